import { type ReactNode, type RefObject, useId } from 'react';
import { messageOf } from '../core/errors';
import { type Command, useCommands } from './commands';
import { Copy } from './copy';
import { Icon } from './icon';
import { Menu } from './menu';
import type { LegendEntry } from './png';
import { toast } from './toast';

export type ExportFormat = 'csv' | 'json';

/** A chart to export as a picture. */
export interface PictureSource {
  readonly element: RefObject<HTMLElement | null>;
  readonly title: string;
  readonly subtitle?: string | undefined;
  readonly legend?: readonly LegendEntry[] | undefined;
  /** The file name with its extension: `fileName([...], 'png')`. */
  readonly file: string;
}

interface Props {
  /** The contents of the files. */
  readonly note: string;
  /** Omitted if there is only a picture. */
  readonly onExport?: ((format: ExportFormat) => void) | undefined;
  readonly picture?: PictureSource | readonly PictureSource[] | undefined;
  /** Creates the table as Markdown. */
  readonly markdown?: (() => string) | undefined;
}

const listed = (picture: Props['picture'] = []): readonly PictureSource[] => [picture].flat();

async function save({ element, file, ...about }: PictureSource): Promise<void> {
  if (!element.current) return;
  try {
    const { savePng } = await import('./png');
    await savePng({ ...about, element: element.current }, file);
  } catch (error) {
    const why = messageOf(error);
    toast(`The picture could not be created: ${why}`, { tone: 'bad' });
  }
}

/** The same as commands of the palette. */
function commandsOf(id: string, { note, onExport, picture }: Props): Command[] {
  const files: Command[] = onExport
    ? (['csv', 'json'] as const).map((format) => ({
        id: `${id} ${format}`,
        label: `Export as ${format.toUpperCase()}`,
        note,
        run: () => onExport(format),
      }))
    : [];
  const pictures = listed(picture).map((source) => ({
    id: `${id} ${source.file}`,
    label: 'Export as PNG',
    note: source.title,
    run: () => void save(source),
  }));
  return [...files, ...pictures];
}

/** The menu of export formats. */
export function ExportMenu(props: Props): ReactNode {
  const { note, onExport, markdown } = props;
  const pictures = listed(props.picture);
  useCommands(commandsOf(useId(), props));
  return (
    <Menu
      label={
        <>
          <Icon name="download" size={15} /> Export
        </>
      }
    >
      {onExport && (
        <>
          <button type="button" className="option" onClick={() => onExport('csv')}>
            CSV
          </button>
          <button type="button" className="option" onClick={() => onExport('json')}>
            JSON
          </button>
        </>
      )}
      {pictures.map((source) => (
        <button
          key={source.file}
          type="button"
          className="option"
          onClick={() => void save(source)}
        >
          {pictures.length > 1 ? `PNG: ${source.title}` : 'PNG of the chart'}
        </button>
      ))}
      {markdown && <Copy text={markdown} label="Copy as Markdown" quiet />}
      <p className="menu-note note">{note}</p>
    </Menu>
  );
}
