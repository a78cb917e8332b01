/** From the API's columns to the rows that a table shows. Pure. */
import type { Column, Table } from '../../api/types.gen';
import type { CellValue } from '../../core/format';
import { natural } from '../../core/natural';
import type { Matcher } from '../../core/search';

/** A row is its place in the columns. */
export interface RowIndex {
  readonly at: number;
}

export function cellOf(table: Table, column: string, at: number): CellValue {
  return (table.values[column]?.[at] ?? null) as CellValue;
}

/** Where the API sends a short name to show and, beside it, the whole one. */
export const WHOLE_NAME = 'full_name';

/** A row's name, whole. */
export function wholeName(table: Table, at: number): string {
  const whole = cellOf(table, WHOLE_NAME, at);
  return String(whole ?? cellOf(table, table.columns[0]?.key ?? '', at) ?? '');
}

/** Columns that the search box looks into. */
const searched = (table: Table): Column[] =>
  table.columns.filter((column) => column.unit === 'text' || column.unit === 'code');

export function matchingRows(table: Table, matcher: Matcher): RowIndex[] {
  const all = Array.from({ length: table.row_count }, (_, at) => ({ at }));
  if (matcher.kind !== 'test') return all;
  const columns = searched(table);
  return all.filter(({ at }) =>
    columns.some((column) => {
      const value = cellOf(table, column.key, at);
      return value !== null && matcher.test(String(value));
    }),
  );
}

/** Ascending order of two recorded values; what is not recorded comes last either way. */
export function compareCells(a: CellValue, b: CellValue): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return natural.compare(String(a), String(b));
}

/** What a full bar of a share column stands for: the largest part of a whole, else all of one. */
export function shareScale(table: Table, column: string): number {
  let largest = 0;
  let sum = 0;
  for (const value of table.values[column] ?? []) {
    if (typeof value !== 'number') continue;
    largest = Math.max(largest, value);
    sum += value;
  }
  // Shares of one whole sum to it; others, such as occupancy, are each on a scale of their own.
  return sum <= 1.001 ? largest : 1;
}
