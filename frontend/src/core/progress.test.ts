import { describe, expect, it } from 'vitest';
import {
  cancelledSpan,
  noRuns,
  queuedSpan,
  readingSpan,
  runOf,
  spanOf,
  unreadableRun,
} from '../../tests/states';
import type { Span } from '../api/types.gen';
import { announcement, doneShare, progressOf } from './progress';

const SECOND = 1_000_000_000;

/** Read at 10 MB a second: `left` seconds are to go of `whole`. */
function steady(whole: number, left: number, patch: Partial<Span> = {}): Span {
  const bytes = whole * 10_000_000;
  return readingSpan({
    file_bytes: bytes,
    progress: {
      phase: 'reading',
      bytes_done: (bytes * (whole - left)) / whole,
      bytes_total: bytes,
      events: 1,
      elapsed_ns: (whole - left) * SECOND,
      left_ns: left * SECOND,
    },
    ...patch,
  });
}

const waiting = (place: number, seconds: number): Span =>
  queuedSpan(place, { file_bytes: seconds * 10_000_000 });

describe('the progress of some files', () => {
  it('counts files and bytes of all that is wanted', () => {
    const spans = [
      spanOf({ file_bytes: 30_000_000 }),
      spanOf({ state: 'unreadable', file_bytes: 10_000_000 }),
      steady(4, 1),
      waiting(1, 2),
      cancelledSpan(),
    ];
    const progress = progressOf(spans);
    expect(progress).toEqual({
      totalCount: 4,
      doneCount: 2,
      cancelledCount: 1,
      bytesDone: 70_000_000,
      bytesTotal: 100_000_000,
      leftNs: 3 * SECOND,
    });
    expect(doneShare(progress)).toBe(0.7);
  });

  it('shares the waiting files among those that read', () => {
    expect(progressOf([steady(4, 2), steady(4, 2), waiting(1, 4)]).leftNs).toBe(4 * SECOND);
  });

  it('takes as long as the longest file at least', () => {
    expect(progressOf([steady(100, 99), steady(4, 1)]).leftNs).toBe(99 * SECOND);
  });

  it('does not guess before a pace is known, or when others are read in between', () => {
    const started = steady(4, 2);
    const unknown = {
      ...started,
      progress: started.progress && { ...started.progress, left_ns: null },
    };
    expect(progressOf([unknown]).leftNs).toBeNull();
    expect(progressOf([waiting(1, 4)]).leftNs).toBeNull();
    expect(progressOf([steady(4, 2), waiting(3, 4)]).leftNs).toBeNull();
  });

  it('is all where nothing is wanted, and by files where no size is known', () => {
    expect(doneShare(progressOf([cancelledSpan()]))).toBe(1);
    const unsized = [spanOf({ file_bytes: 0 }), queuedSpan(1, { file_bytes: 0 })];
    expect(doneShare(progressOf(unsized))).toBe(0.5);
  });
});

describe('what screen readers are told', () => {
  const said = (...spans: Span[]): string =>
    announcement({ ...noRuns, runs: [runOf('run', 'reading', spans)] });

  it('changes with each half of many files and each quarter of one, not with each byte', () => {
    const many = (count: number): Span[] => Array.from({ length: count }, () => steady(100, 50));
    expect(said(...many(64))).toBe('Reading files: 64 or fewer are left');
    expect(said(...many(33), spanOf())).toBe('Reading files: 64 or fewer are left');
    expect(said(...many(3))).toBe('Reading files: 4 or fewer are left');
    expect(said(steady(100, 80), spanOf())).toBe('Reading the last file: 0 % done');
    expect(said(steady(100, 74))).toBe('Reading the last file: 25 % done');
    expect(said(steady(100, 0), cancelledSpan())).toBe('Reading the last file: 75 % done');
  });

  it('ends with what came of it', () => {
    const runs = [runOf('run', 'ready', [spanOf(), spanOf(), cancelledSpan()]), unreadableRun];
    expect(announcement({ ...noRuns, runs })).toBe(
      '2 files are ready, 1 could not be read, 1 cancelled',
    );
    expect(announcement(noRuns)).toBe('');
  });
});
