import type { ReactNode } from 'react';
import type { ExportTable } from '../core/export';
import { ExportMenu, type PictureSource } from './export_menu';
import { saveTable } from './save_table';

interface Props {
  readonly note: string;
  /** The parts of the file's name. */
  readonly name: readonly string[];
  readonly table: () => ExportTable;
  /** Further fields of the JSON, or the JSON itself. */
  readonly about?: Readonly<Record<string, unknown>> | (() => string);
  readonly picture?: PictureSource | readonly PictureSource[];
}

/** Exports a table as CSV or JSON, and its chart as a picture. */
export function TableExport({ note, name, table, about = {}, picture }: Props): ReactNode {
  return (
    <ExportMenu
      note={note}
      picture={picture}
      onExport={(format) => saveTable({ name, format, table: table(), about })}
    />
  );
}
