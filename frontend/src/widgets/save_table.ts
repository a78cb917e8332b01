/** Saves a table as CSV or JSON. */
import { type ExportTable, fileName, toCsv, toJson } from '../core/export';
import { download } from '../host/download';
import type { ExportFormat } from './export_menu';

interface Options {
  /** Parts of the file name. */
  readonly name: readonly string[];
  readonly format: ExportFormat;
  readonly table: ExportTable;
  /** Further fields of the JSON, or a function that creates the whole JSON. */
  readonly about: Readonly<Record<string, unknown>> | (() => string);
}

export function saveTable({ name, format, table, about }: Options): void {
  if (format === 'csv') {
    download(fileName(name, format), 'text/csv', toCsv(table));
    return;
  }
  const text = typeof about === 'function' ? about() : toJson(table, about);
  download(fileName(name, format), 'application/json', text);
}
