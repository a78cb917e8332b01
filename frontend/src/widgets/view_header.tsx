import type { ReactNode } from 'react';
import './view_header.css';

interface Props {
  readonly title: string;
  /** What is shown and how much of it: one short line. */
  readonly note?: ReactNode;
  /** What can be done with all of it, right-aligned: search, segments, columns, export. */
  readonly children?: ReactNode;
}

/** The head of every view: its title, how much there is, and what can be done with it. */
export function ViewHeader({ title, note, children }: Props): ReactNode {
  return (
    <header className="view-header wrap">
      <h2>{title}</h2>
      {note !== undefined && <p className="note">{note}</p>}
      {children !== undefined && <div className="view-actions wrap">{children}</div>}
    </header>
  );
}
