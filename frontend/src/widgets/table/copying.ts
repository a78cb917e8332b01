/** Cells, rows and columns as text for a spreadsheet: tabs and lines, in full precision. Pure. */
import type { Column, Table } from '../../api/types.gen';
import type { CellValue } from '../../core/format';
import { unitSuffix } from '../../core/units';
import { cellOf, type Rows, wholeName } from './rows';

/** A spreadsheet ends a cell at a tab or a line. */
export const cellText = (value: CellValue): string =>
  value === null || value === undefined ? '' : String(value).replaceAll(/[\t\r\n]+/g, ' ');

/** A row under its columns' names. */
export function rowText(table: Table, columns: readonly Column[], at: number): string {
  const names = columns.map((column) => column.label + unitSuffix(column.unit));
  const cells = columns.map((column, place) =>
    cellText(place === 0 ? wholeName(table, at) : cellOf(table, column.key, at)),
  );
  return `${names.join('\t')}\n${cells.join('\t')}`;
}

/** A column's values in the order of the rows, under its name. */
export function columnText(table: Table, column: Column, rows: Rows): string {
  const cells = Array.from(rows, (at) => cellText(cellOf(table, column.key, at)));
  return [column.label + unitSuffix(column.unit), ...cells].join('\n');
}

/** A condition for the search box that holds for the rows with this value. */
export function conditionText(column: Column, value: CellValue): string | null {
  if (typeof value !== 'string' || value === '' || value.includes('"')) return null;
  return `${column.key}:"${value}"`;
}
