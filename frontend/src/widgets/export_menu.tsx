import { type ReactNode, type RefObject, useId } from 'react';
import { type Command, useCommands } from './commands';
import { Copy } from './copy';
import { Icon } from './icon';
import { Menu } from './menu';
import type { LegendEntry } from './png';
import { toast } from './toast';

export type ExportFormat = 'csv' | 'json';

/** A chart that can be taken along as a picture. */
export interface PictureSource {
  readonly element: RefObject<HTMLElement | null>;
  readonly title: string;
  readonly subtitle?: string | undefined;
  readonly legend?: readonly LegendEntry[] | undefined;
  /** The file's name, with its ending: `fileName([...], 'png')`. */
  readonly file: string;
}

interface Props {
  /** What the files will hold. */
  readonly note: string;
  /** Left out where there is only a picture. */
  readonly onExport?: ((format: ExportFormat) => void) | undefined;
  /** Of one chart, or of several. */
  readonly picture?: PictureSource | readonly PictureSource[] | undefined;
  /** The same as a table in Markdown, for an issue or a chat. */
  readonly markdown?: (() => string) | undefined;
}

const listed = (picture: Props['picture'] = []): readonly PictureSource[] => [picture].flat();

async function save({ element, file, ...about }: PictureSource): Promise<void> {
  if (!element.current) return;
  try {
    const { savePng } = await import('./png');
    await savePng({ ...about, element: element.current }, file);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    toast(`No picture could be made: ${why}`, { tone: 'bad' });
  }
}

/** The same for the search over everything. */
function commandsOf(id: string, { note, onExport, picture }: Props): Command[] {
  const files: Command[] = onExport
    ? (['csv', 'json'] as const).map((format) => ({
        id: `${id} ${format}`,
        label: `Export as ${format.toUpperCase()}`,
        note,
        run: () => onExport(format),
      }))
    : [];
  const pictures = listed(picture).map((each) => ({
    id: `${id} ${each.file}`,
    label: 'Export as PNG',
    note: each.title,
    run: () => void save(each),
  }));
  return [...files, ...pictures];
}

/** Takes what is shown along as a file. */
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
      {pictures.map((each) => (
        <button key={each.file} type="button" className="option" onClick={() => void save(each)}>
          {pictures.length > 1 ? `PNG: ${each.title}` : 'PNG of the chart'}
        </button>
      ))}
      {markdown && <Copy text={markdown} label="Copy as Markdown" quiet />}
      <p className="menu-note note">{note}</p>
    </Menu>
  );
}
