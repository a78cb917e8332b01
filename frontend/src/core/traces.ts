/** The traces of a run. */
import type { RunState, Span, Worker } from '../api/types.gen';

/** What identifies a trace in its run. */
export interface TraceRef {
  readonly trace: string;
  readonly rank: number | null;
  /** Of the worker. */
  readonly name: string;
  readonly span: string;
}

export const traceRefsOf = (run: RunState): TraceRef[] =>
  run.workers.flatMap(({ name, rank, spans }) =>
    spans.map(({ trace, label }) => ({ trace, rank, name, span: label })),
  );

/** `rank 3`, or the worker's name if the rank is unknown. */
export const rankLabel = ({ rank, name }: Pick<TraceRef, 'rank' | 'name'>): string =>
  rank === null ? name : `rank ${rank}`;

/** A span with its worker. */
export interface WorkerSpan {
  readonly worker: Worker;
  readonly span: Span;
}

export const workerSpansOf = (run: RunState): WorkerSpan[] =>
  run.workers.flatMap((worker) => worker.spans.map((span) => ({ worker, span })));
