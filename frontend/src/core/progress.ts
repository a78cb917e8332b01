/** The progress of reading. Pure. */
import type { RunState, Runs, Span } from '../api/types.gen';
import { plural } from './format';

export interface Progress {
  /** Files to read, without cancelled ones. */
  readonly totalCount: number;
  /** Ready or unreadable files. */
  readonly doneCount: number;
  readonly cancelledCount: number;
  readonly bytesDone: number;
  readonly bytesTotal: number;
  /** Until all files are ready; null if unknown. */
  readonly leftNs: number | null;
}

export const spansOf = (run: RunState): Span[] => run.workers.flatMap((worker) => worker.spans);

export const isPending = ({ state }: Span): boolean => state === 'queued' || state === 'reading';

const sum = (values: readonly number[]): number => values.reduce((all, value) => all + value, 0);

function bytesDone(span: Span): number {
  if (!isPending(span)) return span.file_bytes;
  return Math.min(span.progress?.bytes_done ?? 0, span.file_bytes);
}

/** Bytes per nanosecond and remaining bytes of a file, at an even pace. */
function paceOf({ file_bytes, progress }: Span): readonly [pace: number, toGo: number] {
  if (!progress || progress.left_ns === null) return [0, file_bytes];
  const wholeNs = Math.max(1, progress.elapsed_ns + progress.left_ns);
  return [file_bytes / wholeNs, (file_bytes * progress.left_ns) / wholeNs];
}

/** Null without a pace, or if other files are ahead in the queue. */
function leftNs(spans: readonly Span[]): number | null {
  const pending = spans.filter(isPending);
  const queued = pending.filter((span) => span.state === 'queued');
  if (queued.some((span) => (span.place ?? 0) > queued.length)) return null;
  const paces = pending.map(paceOf);
  const pace = sum(paces.map(([value]) => value));
  if (pace === 0) return null;
  const together = sum(paces.map(([, toGo]) => toGo)) / pace;
  return Math.max(together, ...pending.map((span) => span.progress?.left_ns ?? 0));
}

export function progressOf(spans: readonly Span[]): Progress {
  const active = spans.filter((span) => span.state !== 'cancelled');
  return {
    totalCount: active.length,
    doneCount: active.filter((span) => !isPending(span)).length,
    cancelledCount: spans.length - active.length,
    bytesDone: sum(active.map(bytesDone)),
    bytesTotal: sum(active.map((span) => span.file_bytes)),
    leftNs: leftNs(spans),
  };
}

/** 0 to 1, by bytes, or by files if sizes are unknown. */
export function doneShare({
  bytesDone: done,
  bytesTotal,
  doneCount,
  totalCount,
}: Progress): number {
  if (totalCount === 0) return 1;
  return bytesTotal > 0 ? done / bytesTotal : doneCount / totalCount;
}

/** Announcements for one file: its start and each quarter. */
const QUARTERS = 4;

function goingOn(pending: readonly Span[]): string {
  if (pending.length > 1) {
    const atMost = 2 ** Math.ceil(Math.log2(pending.length));
    return `Reading files: ${atMost} or fewer are left`;
  }
  const quarter = Math.floor(doneShare(progressOf(pending)) * QUARTERS);
  return `Reading the last file: ${(Math.min(quarter, QUARTERS - 1) * 100) / QUARTERS} % done`;
}

/** Text for screen readers: each half of many files, each quarter of one file, and the end. */
export function announcement(runs: Runs): string {
  const spans = runs.runs.flatMap(spansOf);
  const pending = spans.filter(isPending);
  if (pending.length > 0) return goingOn(pending);
  const of = (state: Span['state']): number => spans.filter((span) => span.state === state).length;
  const parts = [
    `${plural(of('ready'), 'file is', 'files are')} ready`,
    of('unreadable') > 0 ? `${of('unreadable')} could not be read` : '',
    of('cancelled') > 0 ? `${of('cancelled')} cancelled` : '',
  ];
  return spans.length === 0 ? '' : parts.filter((part) => part !== '').join(', ');
}
