import { describe, expect, it } from 'vitest';
import { paceOf, type Sample, withSample } from './pace';
import type { Progress } from './progress';

const progress = (patch: Partial<Progress> = {}): Progress => ({
  totalCount: 1024,
  doneCount: 424,
  cancelledCount: 0,
  bytesDone: 4e9,
  bytesTotal: 10e9,
  leftNs: 7,
  ...patch,
});
const at = (atMs: number, doneCount: number, bytesDone: number): Sample => ({
  atMs,
  doneCount,
  bytesDone,
});

describe('the pace of reading', () => {
  it('is told by what came in lately', () => {
    const seen = [at(0, 324, 3e9), at(10_000, 424, 4e9)];
    expect(paceOf(seen, progress())).toEqual({ bytesPerSecond: 1e8, leftNs: 60e9 });
  });

  it('is that of files where they are small, and of bytes where the large ones are still to come', () => {
    const seen = [at(0, 324, 3.9e9), at(10_000, 424, 4e9)];
    expect(paceOf(seen, progress()).leftNs).toBe(600e9);
    expect(paceOf(seen, progress({ bytesDone: 9.9e9 })).leftNs).toBe(60e9);
  });

  it('is left to those being read where little was seen', () => {
    expect(paceOf([], progress())).toEqual({ bytesPerSecond: null, leftNs: 7 });
    const short = [at(0, 0, 0), at(3999, 400, 4e9)];
    expect(paceOf(short, progress())).toEqual({ bytesPerSecond: null, leftNs: 7 });
    const few = [at(0, 421, 3e9), at(10_000, 424, 4e9)];
    expect(paceOf(few, progress())).toEqual({ bytesPerSecond: 1e8, leftNs: 7 });
  });

  it('forgets what is long ago, and all of it where files are read anew', () => {
    const seen = [at(0, 1, 1), at(20_000, 2, 2)];
    expect(withSample(seen, at(40_000, 3, 3))).toEqual([at(20_000, 2, 2), at(40_000, 3, 3)]);
    expect(withSample(seen, at(21_000, 0, 0))).toEqual([at(21_000, 0, 0)]);
    expect(withSample(seen, at(20_000, 2, 2))).toEqual(seen);
  });
});
