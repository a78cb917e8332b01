import type { ReactNode } from 'react';
import type { StepUse } from '../api/types.gen';
import { duration, plural } from '../core/format';
import './histogram.css';

interface Props {
  readonly steps: readonly StepUse[];
  /** What is counted: `call`, `run`. */
  readonly what: string;
  readonly chosen: number | null;
  readonly choose: (step: number | null) => void;
}

const MOST_COLUMNS = 120;

export interface StepsTogether {
  readonly first: number;
  readonly last: number;
  /** Of the mean step of them. */
  readonly calls: number;
  readonly timeNs: number;
}

/** Steps beside each other, so many together that all have a place. */
export function columnsOf(steps: readonly StepUse[], most = MOST_COLUMNS): StepsTogether[] {
  const together = Math.max(1, Math.ceil(steps.length / most));
  const columns: StepsTogether[] = [];
  for (let at = 0; at < steps.length; at += together) {
    const own = steps.slice(at, at + together);
    const [first, last] = [own[0], own.at(-1)];
    if (!first || !last) continue;
    columns.push({
      first: first.number,
      last: last.number,
      calls: own.reduce((sum, step) => sum + step.call_count, 0) / own.length,
      timeNs: own.reduce((sum, step) => sum + step.time_ns, 0) / own.length,
    });
  }
  return columns;
}

function wordsOf({ first, last, calls, timeNs }: StepsTogether, what: string): string {
  if (first === last) return `Step ${first}: ${duration(timeNs)} in ${plural(calls, what)}`;
  return `Steps ${first} – ${last}: ${duration(timeNs)} a step`;
}

/** Time a step, as a column each; a press narrows the page to that step, another lets it go. */
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
