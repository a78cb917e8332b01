import { expect, it } from 'vitest';
import type { WhatIfBlocks, WhatIfTimeline } from '../../api/types.gen';
import { blockAt, pictureOf, ROW_PX } from './rows';

const blocks = (...rows: readonly (readonly number[])[]): WhatIfBlocks => {
  const column = (at: number): number[] => rows.map((row) => row[at] ?? 0);
  return {
    start_ns: column(0),
    end_ns: column(1),
    names: column(2),
    categories: column(3),
    counts: rows.map(() => 1),
    changes_ns: column(4),
  };
};

const TIMELINE: WhatIfTimeline = {
  schema: 1,
  step: 3,
  steps: [3, 4],
  start_ns: 500,
  recorded_ns: 1000,
  simulated_ns: 600,
  categories: ['cpu', 'kernel'],
  lanes: [
    {
      label: 'stream 7',
      names: ['gemm', 'add'],
      recorded: blocks([0, 800, 0, 1, -400], [900, 902, 1, 1, 0]),
      simulated: blocks([0, 400, 0, 1, -400], [500, 502, 1, 1, 0]),
    },
  ],
};

it('the recorded rows come first, then the simulated ones with their changes', () => {
  const { rows, lengthNs, ends } = pictureOf(TIMELINE);
  expect(rows.map(({ label, blocks }) => [label, blocks.map(({ isMarked }) => isMarked)])).toEqual([
    ['Recorded: 1.00 µs', []],
    ['stream 7', [false, false]],
    ['Simulated: 600 ns', []],
    ['stream 7', [true, false]],
  ]);
  expect(lengthNs).toBe(1000);
  expect(ends.map(({ endNs }) => endNs)).toEqual([1000, 600]);
});

it('a block is found at its time and row, a narrow one within a pixel', () => {
  const picture = pictureOf(TIMELINE);
  const y = (picture.rows[3]?.topPx ?? 0) + ROW_PX / 2;
  expect(blockAt(picture, 300, y, 5)).toMatchObject({ name: 'gemm', category: 'kernel' });
  expect(blockAt(picture, 505, y, 5)?.name).toBe('add');
  expect(blockAt(picture, 450, y, 5)).toBeNull();
  expect(blockAt(picture, 300, 0, 5)).toBeNull();
});
