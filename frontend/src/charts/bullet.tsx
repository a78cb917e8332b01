import type { ReactNode } from 'react';
import { share } from '../core/format';
import './charts.css';

interface Props {
  readonly label: string;
  readonly help: string;
  readonly value: number | null;
  /** Instead of the percentage: `13.2 GiB`. */
  readonly text?: string | undefined;
  /** The reason for a missing or doubtful value. */
  readonly note?: string | undefined;
}

/** A fraction as a bar from 0 to 100 %; a missing value is text, not an empty bar. */
export function Bullet({ label, help, value, text, note }: Props): ReactNode {
  return (
    <div className="bullet">
      <span className="muted" title={help}>
        {label}
      </span>
      {value === null ? (
        <span className="bullet-none">
          not recorded{note ? <span className="bullet-note">{note}</span> : null}
        </span>
      ) : (
        <>
          <span className="track" aria-hidden="true">
            <span style={{ width: `${Math.min(1, value) * 100}%` }} />
          </span>
          <span className="number strong">{text ?? share(value)}</span>
          {note && <span className="bullet-note bullet-doubt">{note}</span>}
        </>
      )}
    </div>
  );
}
