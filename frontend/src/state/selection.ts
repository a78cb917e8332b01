/** Which run, worker and span the page shows: what the URL names, else the latest that can be shown. */
import type { RunState, Runs, Span, Worker } from '../api/types.gen';
import { recordedAt } from '../core/recorded';
import type { PageLocation } from './location';

export interface Selection {
  readonly run: RunState;
  readonly worker: Worker;
  readonly span: Span;
}

export type Selected =
  | { readonly kind: 'selected'; readonly selection: Selection }
  | { readonly kind: 'unknown-run'; readonly name: string }
  | { readonly kind: 'empty' };

/** What a location that names none has shown so far, by id: what comes in meanwhile takes nobody's page away. */
export interface Held {
  readonly run: string | null;
  readonly trace: string | null;
}

export const NOTHING_HELD: Held = { run: null, trace: null };

const isNamed = ({ worker, span }: PageLocation): boolean => worker !== null && span !== null;

/** What is to be held from here on. */
export function heldOf(location: PageLocation, selected: Selected, held: Held): Held {
  if (selected.kind !== 'selected') return held;
  const { run, span } = selected.selection;
  return {
    run: location.run === null ? run.id : held.run,
    trace: isNamed(location) || span.state !== 'ready' ? held.trace : span.trace,
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

/** The run that was just made: the latest by its files' names; of equals the first that is ready. */
function latestRun(runs: readonly RunState[]): RunState | undefined {
  const readable = runs.filter(({ state }) => state !== 'unreadable' && state !== 'cancelled');
  const times = new Map(readable.map((run) => [run, latestOf(run)]));
  const latest = [...times.values()].reduce((a, b) => (a > b ? a : b), '');
  return mostReady(readable.filter((run) => times.get(run) === latest)) ?? mostReady(runs);
}

function runOf(
  runs: readonly RunState[],
  named: string | null,
  held: string | null,
): RunState | undefined {
  if (named === null) {
    const kept = runs.find((run) => run.id === held && run.state !== 'unreadable');
    return kept ?? latestRun(runs);
  }
  return runs.find((run) => run.id === named) ?? runs.find((run) => run.name === named);
}

function workerOf(run: RunState, named: string | null, held: string | null): Worker | undefined {
  const isHeld = ({ trace, state }: Span): boolean => trace === held && state === 'ready';
  const found =
    run.workers.find((worker) => worker.name === named) ??
    run.workers.find(({ spans }) => spans.some(isHeld));
  if (found) return found;
  const span = mostReady(run.workers.flatMap((worker) => worker.spans));
  return run.workers.find((worker) => span && worker.spans.includes(span)) ?? run.workers[0];
}

function spanOf(worker: Worker, named: string | null, held: string | null): Span | undefined {
  return (
    worker.spans.find((span) => span.label === named) ??
    worker.spans.find(({ trace, state }) => trace === held && state === 'ready') ??
    mostReady(worker.spans)
  );
}

/** Chooses what a location names, and where it names nothing what it has shown so far. */
export function select(runs: Runs, location: PageLocation, held: Held = NOTHING_HELD): Selected {
  const run = runOf(runs.runs, location.run, held.run);
  if (!run)
    return location.run && runs.runs.length > 0
      ? { kind: 'unknown-run', name: location.run }
      : { kind: 'empty' };
  const worker = workerOf(run, location.worker, location.worker === null ? held.trace : null);
  const span = worker && spanOf(worker, location.span, held.trace);
  if (!worker || !span) return { kind: 'empty' };
  return { kind: 'selected', selection: { run, worker, span } };
}
