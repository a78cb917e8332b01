import type { ReactNode } from 'react';
import './view_header.css';

interface Props {
  readonly title: string;
  /** A short summary of the contents. */
  readonly note?: ReactNode;
  /** Controls on the right: search, segments, columns, export. */
  readonly children?: ReactNode;
}

/** The header of a view. */
export function ViewHeader({ title, note, children }: Props): ReactNode {
  return (
    <header className="view-header wrap">
      <h2>{title}</h2>
      {note !== undefined && <p className="note">{note}</p>}
      {children !== undefined && <div className="view-actions wrap">{children}</div>}
    </header>
  );
}
