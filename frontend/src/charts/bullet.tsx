import type { ReactNode } from 'react';
import { share } from '../core/format';
import './charts.css';

interface Props {
  readonly label: string;
  readonly help: string;
  readonly value: number | null;
  /** In place of the share: `14.2 GB`. */
  readonly text?: string | undefined;
  /** Why there is no value, and what would record it; or why the value is doubtful. */
  readonly note?: string | undefined;
}

/** One share on a scale from nothing to all; what was not recorded says so, and is never drawn as nothing. */
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
