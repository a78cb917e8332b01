/** A table as a file of either form. */
import { type ExportTable, fileName, toCsv, toJson } from '../core/export';
import { download } from '../host/download';
import type { ExportFormat } from './export_menu';

interface Options {
  /** The words of the file's name. */
  readonly name: readonly string[];
  readonly format: ExportFormat;
  readonly table: ExportTable;
  /** What the JSON says beside the table; a function, where the JSON is something else. */
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
