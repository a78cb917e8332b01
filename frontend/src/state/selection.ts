/**
 * The run, worker and span to show: those in the URL, else the latest available ones; on the view of all runs, those
 * of the run that comes first there.
 */
import type { RunState, Runs, Span, Worker } from '../api/types.gen';
import { recordedAt } from '../core/recorded';
import { mostUrgent } from '../core/run_order';
import { LANDING, type PageLocation } from './location';

export interface Selection {
  readonly run: RunState;
  readonly worker: Worker;
  readonly span: Span;
}

export type Selected =
  | { readonly kind: 'selected'; readonly selection: Selection }
  | { readonly kind: 'unknown-run'; readonly name: string }
  | { readonly kind: 'empty' };

/** The run and trace shown so far at a location without names: new files do not replace them. */
export interface LastShown {
  readonly run: string | null;
  readonly trace: string | null;
}

export const NOTHING_SHOWN: LastShown = { run: null, trace: null };

const isNamed = ({ worker, span }: PageLocation): boolean => worker !== null && span !== null;

export function lastShown(location: PageLocation, selected: Selected, last: LastShown): LastShown {
  if (selected.kind !== 'selected') return last;
  const { run, span } = selected.selection;
  return {
    run: location.run === null ? run.id : last.run,
    trace: isNamed(location) || span.state !== 'ready' ? last.trace : span.trace,
  };
}

const ORDER = { ready: 0, reading: 1, queued: 2, cancelled: 3, unreadable: 4 } as const;

function mostReady<T extends { state: keyof typeof ORDER }>(items: readonly T[]): T | undefined {
  return items.reduce<T | undefined>(
    (best, item) => (best === undefined || ORDER[item.state] < ORDER[best.state] ? item : best),
    undefined,
  );
}

const latestOf = (run: RunState): string =>
  run.workers
    .flatMap((worker) => worker.spans)
    .reduce((latest, { file }) => (recordedAt(file) > latest ? recordedAt(file) : latest), '');

/** The latest run by file names; of equals, the first that is ready. */
function latestRun(runs: readonly RunState[]): RunState | undefined {
  const readable = runs.filter(({ state }) => state !== 'unreadable' && state !== 'cancelled');
  const times = new Map(readable.map((run) => [run, latestOf(run)]));
  const latest = [...times.values()].reduce((a, b) => (a > b ? a : b), '');
  return mostReady(readable.filter((run) => times.get(run) === latest)) ?? mostReady(runs);
}

/** Whether the view lists all runs, and a link to it names none of them. */
const isOfAllRuns = ({ view, run }: PageLocation): boolean =>
  run === null && (view === LANDING || view === 'runs');

/** On the view of all runs, the run shown so far gives way while results arrive. */
const isUndecided = (runs: Runs, location: PageLocation): boolean =>
  isOfAllRuns(location) && (runs.loading || runs.has_pending_results);

function runOf(runs: Runs, location: PageLocation, last: string | null): RunState | undefined {
  const { runs: list } = runs;
  const { run: named } = location;
  if (named !== null)
    return list.find((run) => run.id === named) ?? list.find((run) => run.name === named);
  const previous = list.find((run) => run.id === last && run.state !== 'unreadable');
  if (previous && !isUndecided(runs, location)) return previous;
  return (isOfAllRuns(location) ? mostUrgent(list) : undefined) ?? latestRun(list);
}

function workerOf(run: RunState, named: string | null, last: string | null): Worker | undefined {
  const isLast = ({ trace, state }: Span): boolean => trace === last && state === 'ready';
  const match =
    run.workers.find((worker) => worker.name === named) ??
    run.workers.find(({ spans }) => spans.some(isLast));
  if (match) return match;
  const span = mostReady(run.workers.flatMap((worker) => worker.spans));
  return run.workers.find((worker) => span && worker.spans.includes(span)) ?? run.workers[0];
}

function spanOf(worker: Worker, named: string | null, last: string | null): Span | undefined {
  return (
    worker.spans.find((span) => span.label === named) ??
    worker.spans.find(({ trace, state }) => trace === last && state === 'ready') ??
    mostReady(worker.spans)
  );
}

/** Resolves a location to a run, a worker and a span. */
export function select(
  runs: Runs,
  location: PageLocation,
  last: LastShown = NOTHING_SHOWN,
): Selected {
  const run = runOf(runs, location, last.run);
  if (!run)
    return location.run && runs.runs.length > 0
      ? { kind: 'unknown-run', name: location.run }
      : { kind: 'empty' };
  const worker = workerOf(run, location.worker, location.worker === null ? last.trace : null);
  const span = worker && spanOf(worker, location.span, last.trace);
  if (!worker || !span) return { kind: 'empty' };
  return { kind: 'selected', selection: { run, worker, span } };
}
