import type { ReactNode } from 'react';
import { Icon } from './icon';
import { Menu } from './menu';

export type ExportFormat = 'csv' | 'json';

interface Props {
  /** What the files will hold. */
  readonly note: string;
  readonly onExport: (format: ExportFormat) => void;
}

/** Takes what is shown along as a file. */
export function ExportMenu({ note, onExport }: Props): ReactNode {
  return (
    <Menu
      label={
        <>
          <Icon name="download" size={15} /> Export
        </>
      }
    >
      <button type="button" className="menu-item" onClick={() => onExport('csv')}>
        CSV
      </button>
      <button type="button" className="menu-item" onClick={() => onExport('json')}>
        JSON
      </button>
      <p className="menu-note">{note}</p>
    </Menu>
  );
}
