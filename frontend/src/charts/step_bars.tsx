import type { ReactNode } from 'react';
import type { StepUse } from '../api/types.gen';
import { duration, plural } from '../core/format';
import './histogram.css';

interface Props {
  readonly steps: readonly StepUse[];
  /** The unit of the counts: `call`, `run`. */
  readonly what: string;
  readonly chosen: number | null;
  readonly choose: (step: number | null) => void;
}

const MOST_COLUMNS = 120;

export interface StepsTogether {
  readonly first: number;
  readonly last: number;
  /** Mean per step. */
  readonly calls: number;
  readonly timeNs: number;
}

/** Groups of consecutive steps, at most `most` of them. */
export function columnsOf(steps: readonly StepUse[], most = MOST_COLUMNS): StepsTogether[] {
  const together = Math.max(1, Math.ceil(steps.length / most));
  const columns: StepsTogether[] = [];
  for (let at = 0; at < steps.length; at += together) {
    const group = steps.slice(at, at + together);
    const [first, last] = [group[0], group.at(-1)];
    if (!first || !last) continue;
    columns.push({
      first: first.number,
      last: last.number,
      calls: group.reduce((sum, step) => sum + step.call_count, 0) / group.length,
      timeNs: group.reduce((sum, step) => sum + step.time_ns, 0) / group.length,
    });
  }
  return columns;
}

function wordsOf({ first, last, calls, timeNs }: StepsTogether, what: string): string {
  if (first === last) return `Step ${first}: ${duration(timeNs)} in ${plural(calls, what)}`;
  return `Steps ${first} – ${last}: ${duration(timeNs)} per step`;
}

/**
 * Time per step as columns; a click filters all views to the step, a second click clears the
 * filter.
 */
export function StepBars({ steps, what, chosen, choose }: Props): ReactNode {
  const columns = columnsOf(steps);
  const largest = Math.max(1, ...columns.map((column) => column.timeNs));
  return (
    <ul className="step-bars" aria-label="Time by step">
      {columns.map((column) => {
        const words = wordsOf(column, what);
        return (
          <li key={column.first}>
            <button
              type="button"
              title={words}
              aria-label={words}
              aria-pressed={chosen === column.first}
              onClick={() => choose(chosen === column.first ? null : column.first)}
            >
              <span style={{ height: `${(column.timeNs / largest) * 100}%` }} />
            </button>
          </li>
        );
      })}
    </ul>
  );
}
