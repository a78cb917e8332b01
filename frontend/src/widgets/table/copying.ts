/** Cells, rows and columns as text for a spreadsheet, in full precision. Pure. */
import type { Column, Table } from '../../api/types.gen';
import type { CellValue } from '../../core/format';
import { unitSuffix } from '../../core/units';
import { cellOf, type Rows, wholeName } from './rows';

/** Tabs and line breaks would end a cell. */
export const cellText = (value: CellValue): string =>
  value === null || value === undefined ? '' : String(value).replaceAll(/[\t\r\n]+/g, ' ');

/** A row below the column names. */
export function rowText(table: Table, columns: readonly Column[], at: number): string {
  const names = columns.map((column) => column.label + unitSuffix(column.unit));
  const cells = columns.map((column, index) =>
    cellText(index === 0 ? wholeName(table, at) : cellOf(table, column.key, at)),
  );
  return `${names.join('\t')}\n${cells.join('\t')}`;
}

/** The values of a column below its name. */
export function columnText(table: Table, column: Column, rows: Rows): string {
  const cells = Array.from(rows, (at) => cellText(cellOf(table, column.key, at)));
  return [column.label + unitSuffix(column.unit), ...cells].join('\n');
}

/** A search condition for the rows with this value. */
export function conditionText(column: Column, value: CellValue): string | null {
  if (typeof value !== 'string' || value === '' || value.includes('"')) return null;
  return `${column.key}:"${value}"`;
}
