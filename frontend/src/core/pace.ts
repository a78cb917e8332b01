/** The pace of reading, measured over the last seconds. Pure. */
import type { Progress } from './progress';

export interface Sample {
  readonly atMs: number;
  readonly doneCount: number;
  readonly bytesDone: number;
}

export interface Pace {
  /** Null until it is measured. */
  readonly bytesPerSecond: number | null;
  /** Until all files are ready. */
  readonly leftNs: number | null;
}

/** Older samples are dropped. */
const SEEN_MS = 30_000;
const LEAST_MS = 4000;
/** With fewer files, the estimate by phase is better. */
const LEAST_FILES = 4;

export const sampleOf = (progress: Progress, atMs: number): Sample => ({
  atMs,
  doneCount: progress.doneCount,
  bytesDone: progress.bytesDone,
});

/** Adds a sample; starts again if files are read again. */
export function withSample(seen: readonly Sample[], sample: Sample): readonly Sample[] {
  const last = seen.at(-1);
  if (last && (sample.bytesDone < last.bytesDone || sample.doneCount < last.doneCount)) {
    return [sample];
  }
  const recent = seen.filter(({ atMs }) => sample.atMs - atMs <= SEEN_MS);
  return last && sample.atMs - last.atMs < 1 ? recent : [...recent, sample];
}

export function paceOf(seen: readonly Sample[], progress: Progress): Pace {
  const [first, last] = [seen[0], seen.at(-1)];
  const untold = { bytesPerSecond: null, leftNs: progress.leftNs };
  if (!first || !last || last.atMs - first.atMs < LEAST_MS) return untold;
  const seconds = (last.atMs - first.atMs) / 1000;
  const bytes = last.bytesDone - first.bytesDone;
  const files = last.doneCount - first.doneCount;
  const bytesPerSecond = bytes > 0 ? bytes / seconds : null;
  if (files < LEAST_FILES) return { ...untold, bytesPerSecond };
  const filesLeft = progress.totalCount - progress.doneCount;
  const bytesLeft = progress.bytesTotal - progress.bytesDone;
  // Small files take time by number, large files by size.
  const leftSeconds = Math.max(
    (filesLeft * seconds) / files,
    bytes > 0 ? (bytesLeft * seconds) / bytes : 0,
  );
  return { bytesPerSecond, leftNs: leftSeconds * 1e9 };
}
