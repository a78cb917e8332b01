import { describe, expect, it } from 'vitest';
import { queuedSpan, spanOf } from '../../tests/states';
import { type Basis, basisOf, waitMs } from './following';
import type { Span } from './types.gen';

const files = (ready: number, waiting: number): Span[] => [
  ...Array.from({ length: ready }, (_, at) => spanOf({ trace: `r${at}` })),
  ...Array.from({ length: waiting }, (_, at) => queuedSpan(at + 1, { trace: `q${at}` })),
];

describe('what an answer on a run rests on', () => {
  it('changes with every file that comes in, is written anew or is given up', () => {
    const bases = [
      files(1, 2),
      files(2, 1),
      [...files(2, 0), spanOf({ state: 'unreadable' })],
      files(3, 0),
      [...files(2, 0), spanOf({ file_bytes: 5 })],
      [...files(2, 0), spanOf({ events: 5 })],
    ].map(basisOf);
    expect(new Set(bases.map(({ revision }) => revision)).size).toBe(bases.length);
    expect(bases.map(({ isGrowing }) => isGrowing)).toEqual([
      true,
      true,
      false,
      false,
      false,
      false,
    ]);
  });

  it('does not change with how far a file that is read has come', () => {
    expect(basisOf(files(1, 1))).toEqual(basisOf([spanOf(), queuedSpan(7)]));
  });
});

describe('an answer is asked for anew', () => {
  const reading: Basis = { revision: 'b', isGrowing: true };
  const read: Basis = { revision: 'b', isGrowing: false };
  const last = { revision: 'a', tookMs: 10, endedAtMs: 10_000, hasFailed: false };

  it('not where nothing has come in since', () => {
    expect(waitMs({ ...last, revision: 'b' }, reading, 99_000)).toBe(false);
  });

  it('at most once a second while files come in, and less often the longer it takes', () => {
    expect(waitMs(last, reading, 10_200)).toBe(800);
    expect(waitMs({ ...last, tookMs: 2000 }, reading, 12_000)).toBe(8000);
    expect(waitMs(last, reading, 60_000)).toBe(50);
  });

  it('at once when the last file is there, unless the server has just failed', () => {
    expect(waitMs({ ...last, tookMs: 2000 }, read, 10_000)).toBe(50);
    expect(waitMs({ ...last, hasFailed: true }, read, 10_000)).toBe(1000);
  });
});
