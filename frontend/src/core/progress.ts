/** How far reading has come: of a run, or of everything. Pure. */
import type { RunState, Runs, Span } from '../api/types.gen';
import { plural } from './format';

export interface Progress {
  /** Files that are wanted: those whose reading was cancelled are not. */
  readonly wantedCount: number;
  /** Of them, those that are ready or cannot be read. */
  readonly doneCount: number;
  readonly cancelledCount: number;
  readonly bytesDone: number;
  readonly bytesTotal: number;
  /** Until all are ready, by the pace of those being read; null where that cannot be told. */
  readonly leftNs: number | null;
}

export const spansOf = (run: RunState): Span[] => run.workers.flatMap((worker) => worker.spans);

export const isPending = ({ state }: Span): boolean => state === 'queued' || state === 'reading';

const sum = (values: readonly number[]): number => values.reduce((all, each) => all + each, 0);

function bytesDone(span: Span): number {
  if (!isPending(span)) return span.file_bytes;
  return Math.min(span.progress?.bytes_done ?? 0, span.file_bytes);
}

/** Bytes a nanosecond, and bytes to go, as if a file's time went evenly over its bytes. */
function paceOf({ file_bytes, progress }: Span): readonly [pace: number, toGo: number] {
  if (!progress || progress.left_ns === null) return [0, file_bytes];
  const wholeNs = Math.max(1, progress.elapsed_ns + progress.left_ns);
  return [file_bytes / wholeNs, (file_bytes * progress.left_ns) / wholeNs];
}

/** Null where nothing tells the pace, or where files of others are read in between. */
function leftNs(spans: readonly Span[]): number | null {
  const pending = spans.filter(isPending);
  const queued = pending.filter((span) => span.state === 'queued');
  if (queued.some((span) => (span.place ?? 0) > queued.length)) return null;
  const paces = pending.map(paceOf);
  const pace = sum(paces.map(([each]) => each));
  if (pace === 0) return null;
  const together = sum(paces.map(([, toGo]) => toGo)) / pace;
  return Math.max(together, ...pending.map((span) => span.progress?.left_ns ?? 0));
}

export function progressOf(spans: readonly Span[]): Progress {
  const wanted = spans.filter((span) => span.state !== 'cancelled');
  return {
    wantedCount: wanted.length,
    doneCount: wanted.filter((span) => !isPending(span)).length,
    cancelledCount: spans.length - wanted.length,
    bytesDone: sum(wanted.map(bytesDone)),
    bytesTotal: sum(wanted.map((span) => span.file_bytes)),
    leftNs: leftNs(spans),
  };
}

/** From 0 to 1, by bytes; by files where no size is known. */
export function doneShare({
  bytesDone: done,
  bytesTotal,
  doneCount,
  wantedCount,
}: Progress): number {
  if (wantedCount === 0) return 1;
  return bytesTotal > 0 ? done / bytesTotal : doneCount / wantedCount;
}

/** So many of one file are told apart: its start and each quarter. */
const QUARTERS = 4;

function goingOn(pending: readonly Span[]): string {
  if (pending.length > 1) {
    const atMost = 2 ** Math.ceil(Math.log2(pending.length));
    return `Reading files: ${atMost} or fewer are left`;
  }
  const quarter = Math.floor(doneShare(progressOf(pending)) * QUARTERS);
  return `Reading the last file: ${(Math.min(quarter, QUARTERS - 1) * 100) / QUARTERS} % done`;
}

/** What screen readers are told: each half of many files, each quarter of one, and the end. */
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
