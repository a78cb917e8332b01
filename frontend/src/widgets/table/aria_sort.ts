import type { Sort } from '../../state/location';

/** The `aria-sort` of a column; null: the rows are not sorted by a column. */
export function ariaSort(sort: Sort | null, key: string): 'ascending' | 'descending' | 'none' {
  if (sort === null || sort.key !== key) return 'none';
  return sort.descending ? 'descending' : 'ascending';
}
