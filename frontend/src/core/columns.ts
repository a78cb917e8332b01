/** Columns of tables that the page builds itself. */
import type { Column, Table } from '../api/types.gen';
import type { CellValue } from './format';

export const column = (key: string, label: string, unit: Column['unit'], help = ''): Column => ({
  key,
  label,
  unit,
  help,
  hidden: false,
  group: '',
});

/** A table that the page builds itself, from cells by column, in their order. */
export const tableOf = (
  columns: Column[],
  rows: readonly Readonly<Record<string, CellValue>>[],
): Table => ({
  schema: 1,
  columns,
  row_count: rows.length,
  values: Object.fromEntries(
    Object.keys(rows[0] ?? {}).map((key) => [key, rows.map((row) => row[key])]),
  ),
  sort: '',
  groups: [],
  group: '',
  total_ns: 0,
  empty: '',
  all_row_count: null,
  match_count: null,
  sums: [],
  title: '',
  meaning: '',
});
