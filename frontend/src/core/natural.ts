/** Natural order: `run_2` before `run_10`. Pure. */
import type { RunState, Runs, Worker } from '../api/types.gen';

/** Shared: a new collator per comparison is ten times slower. */
export const natural = new Intl.Collator('en', { numeric: true, sensitivity: 'base' });

type Value = string | number | boolean | null | undefined;

const isMissing = (value: Value): boolean => value === null || value === undefined;

/** Numbers by value, others as text; missing values come last in both directions. */
export function compareValues(a: Value, b: Value, descending: boolean): number {
  if (isMissing(a) || isMissing(b)) return Number(isMissing(a)) - Number(isMissing(b));
  const order =
    typeof a === 'number' && typeof b === 'number' ? a - b : natural.compare(String(a), String(b));
  return descending ? -order : order;
}

/** By rank where known, otherwise by name. */
function compareWorkers(a: Worker, b: Worker): number {
  if (a.rank !== null && b.rank !== null && a.rank !== b.rank) return a.rank - b.rank;
  return natural.compare(a.name, b.name);
}

function runInOrder(run: RunState): RunState {
  return { ...run, workers: run.workers.toSorted(compareWorkers) };
}

/** The server lists runs in the order of the file system. */
export function inOrder(runs: Runs): Runs {
  const ordered = runs.runs.toSorted((a, b) => natural.compare(a.name, b.name));
  return { ...runs, runs: ordered.map(runInOrder) };
}
