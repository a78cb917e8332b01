/** Tables as CSV and JSON files in full precision. */
import type { Column } from '../api/types.gen';
import type { CellValue } from './format';
import { unitSuffix } from './units';

export interface ExportTable {
  readonly columns: readonly Column[];
  readonly rows: readonly (readonly CellValue[])[];
}

/** Spreadsheets evaluate cells that look like formulas; numbers are safe. */
const FORMULA = /^\s*[=+\-@＝＋－＠]|^[\t\r\n]/;

function csvCell(value: CellValue): string {
  if (value === null || value === undefined) return '';
  if (typeof value === 'number') return String(value);
  const text = String(value);
  const safe = FORMULA.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** RFC 4180; an empty cell means *not recorded*. */
export function toCsv(table: ExportTable): string {
  const header = table.columns.map((column) => csvCell(column.label + unitSuffix(column.unit)));
  const lines = table.rows.map((row) => row.map(csvCell).join(','));
  return `${[header.join(','), ...lines].join('\r\n')}\r\n`;
}

/** One object per row, by column key, with the labels and units of the columns. */
export function toJson(table: ExportTable, about: Readonly<Record<string, unknown>>): string {
  const columns = table.columns.map(({ key, label, unit, help }) => ({ key, label, unit, help }));
  const rows = table.rows.map((row) =>
    Object.fromEntries(table.columns.map((column, at) => [column.key, row[at] ?? null])),
  );
  return `${JSON.stringify({ ...about, columns, rows }, null, 1)}\n`;
}

/** A Markdown table; exact times are in nanoseconds. */
export function toMarkdown({ columns, rows }: ExportTable): string {
  return markdownTable(
    columns.map(({ label, unit }) => label + unitSuffix(unit)),
    rows.map((row) => row.map((cell) => markdownText(String(cell ?? '')))),
  );
}

const MARKUP = /[\\`*_{}[\]<>~#&]/g;
/** Control characters, and marks that reverse the text after them. */
const CONTROL = /[\p{Cc}\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]/gu;

/** Text as one line that Markdown shows as it is, without links, tags and mentions. */
export function markdownText(text: string): string {
  return text
    .replaceAll(/\s+/g, ' ')
    .replaceAll(CONTROL, '\uFFFD')
    .replaceAll(MARKUP, '\\$&')
    .replaceAll('@', '@<!-- -->');
}

/** A table of cells in Markdown. */
export function markdownTable(
  header: readonly string[],
  rows: readonly (readonly string[])[],
): string {
  // One line, and no bar that would end a cell.
  const text = (cell: string): string => cell.replaceAll('|', '\\|').replaceAll(/\s+/g, ' ');
  const line = (cells: readonly string[]): string => `| ${cells.map(text).join(' | ')} |`;
  return [line(header), line(header.map(() => '---')), ...rows.map(line)].join('\n');
}

/** A file name from parts. */
export function fileName(parts: readonly string[], extension: string): string {
  const words = parts.map((part) =>
    part.replaceAll(/[^\w.-]+/g, '-').replaceAll(/^[-.]+|-+$/g, ''),
  );
  return `${words.filter((word) => word !== '').join('_')}.${extension}`;
}
