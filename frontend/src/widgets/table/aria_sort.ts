import type { Sort } from '../../state/location';

/** What a column's header says of the order, for screen readers; null: the rows stand in no column's order. */
export function ariaSort(sort: Sort | null, key: string): 'ascending' | 'descending' | 'none' {
  if (sort === null || sort.key !== key) return 'none';
  return sort.descending ? 'descending' : 'ascending';
}
