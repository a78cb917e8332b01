import type { ReactNode } from 'react';

interface Props {
  readonly title: ReactNode;
  readonly note?: ReactNode;
  /** Buttons on the right of the title. */
  readonly actions?: ReactNode;
  /** Shown while the pointer is on the title. */
  readonly help?: string;
  readonly className?: string;
  /** Its name as a region, for screen readers. */
  readonly label?: string;
  readonly children?: ReactNode;
}

/** A titled part of a view. */
export function Card({ title, note, actions, help, className, label, children }: Props): ReactNode {
  return (
    <section className={className ? `card ${className}` : 'card'} aria-label={label}>
      <div className="card-head" title={help}>
        <h2>{title}</h2>
        {note !== undefined && <p>{note}</p>}
        {actions}
      </div>
      {children}
    </section>
  );
}
