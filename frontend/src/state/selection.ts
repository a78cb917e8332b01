/** Which run, worker and span the page shows: what the URL names, else the first that can be shown. */
import type { RunState, Runs, Span, Worker } from '../api/types.gen';
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

const ORDER = { ready: 0, reading: 1, queued: 2, unreadable: 3 } as const;

function mostReady<T extends { state: keyof typeof ORDER }>(items: readonly T[]): T | undefined {
  return items.reduce<T | undefined>(
    (best, item) => (best === undefined || ORDER[item.state] < ORDER[best.state] ? item : best),
    undefined,
  );
}

function runOf(runs: readonly RunState[], named: string | null): RunState | undefined {
  if (named === null) return mostReady(runs);
  return runs.find((run) => run.id === named) ?? runs.find((run) => run.name === named);
}

function workerOf(run: RunState, named: string | null): Worker | undefined {
  const found = run.workers.find((worker) => worker.name === named);
  if (found) return found;
  const span = mostReady(run.workers.flatMap((worker) => worker.spans));
  return run.workers.find((worker) => span && worker.spans.includes(span)) ?? run.workers[0];
}

function spanOf(worker: Worker, named: string | null): Span | undefined {
  return worker.spans.find((span) => span.label === named) ?? mostReady(worker.spans);
}

export function select(runs: Runs, location: PageLocation): Selected {
  const run = runOf(runs.runs, location.run);
  if (!run)
    return location.run && runs.runs.length > 0
      ? { kind: 'unknown-run', name: location.run }
      : { kind: 'empty' };
  const worker = workerOf(run, location.worker);
  const span = worker && spanOf(worker, location.span);
  if (!worker || !span) return { kind: 'empty' };
  return { kind: 'selected', selection: { run, worker, span } };
}
