import type { ReactNode } from 'react';
import type { Sort } from '../../state/location';
import { Icon } from '../icon';

/** The `aria-sort` of a column; null: the rows are not sorted by a column. */
export function ariaSort(sort: Sort | null, key: string): 'ascending' | 'descending' | 'none' {
  if (sort === null || sort.key !== key) return 'none';
  return sort.descending ? 'descending' : 'ascending';
}

/** The order after a click on a header: one direction, then the other. */
export const toggledSort = (sort: Sort | null, key: string, descendingFirst: boolean): Sort => ({
  key,
  descending: sort?.key === key ? !sort.descending : descendingFirst,
});

/** The order after a click on a header: one direction, the other, then the default order. */
export const cycledSort = (
  sort: Sort | null,
  key: string,
  descendingFirst: boolean,
): Sort | null =>
  sort?.key === key && sort.descending !== descendingFirst
    ? null
    : toggledSort(sort, key, descendingFirst);

interface Props {
  readonly sortKey: string;
  readonly label: string;
  readonly title?: string | undefined;
  readonly isNumber?: boolean;
  readonly className?: string;
  readonly sort: Sort | null;
  readonly onClick: () => void;
}

/** A column header that sorts the table. */
export function SortHeader(props: Props): ReactNode {
  const { sortKey, label, title, isNumber, className = '', sort, onClick } = props;
  const classes = isNumber ? `number ${className}` : className;
  return (
    <th scope="col" className={classes} aria-sort={ariaSort(sort, sortKey)}>
      <button type="button" title={title} onClick={onClick}>
        <span>{label}</span>
        <span className="sort-mark">
          <Icon name="down" size={13} />
        </span>
      </button>
    </th>
  );
}
