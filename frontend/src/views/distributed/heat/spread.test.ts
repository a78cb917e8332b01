import { describe, expect, it } from 'vitest';
import type { RankSteps } from '../../../api/types.gen';
import { gridOf } from './grid';
import { spreadOf, valuesOf } from './spread';

const ranks = (count: number, of: (rank: number) => number): Float64Array =>
  Float64Array.from({ length: count }, (_, rank) => of(rank));

describe('the distribution of a metric over the ranks', () => {
  it('counts each rank in one bin and finds outliers', () => {
    const spread = spreadOf(ranks(1024, (rank) => (rank === 643 ? 200 : 100 + (rank % 5))));
    expect(spread?.bins.reduce((sum, { count }) => sum + count, 0)).toBe(1024);
    expect(spread?.bins.at(-1)?.count).toBe(1);
    expect(spread).toMatchObject({ count: 1024, median: 102, low: 100, high: 200 });
    expect(spread?.odd).toEqual([{ row: 643, value: 200, beyond: 98 }]);
  });

  it('has no outliers for a negligible difference', () => {
    expect(spreadOf(ranks(9, (rank) => (rank === 3 ? 1009 : 1000)))?.odd).toEqual([]);
    expect(spreadOf(ranks(9, (rank) => (rank === 3 ? 1011 : 1000)))?.odd).toHaveLength(1);
  });

  it('has no chance outliers among many ranks', () => {
    const far = (count: number): number | undefined =>
      spreadOf(ranks(count, (rank) => (rank === 3 ? 106.1 : 98 + (rank % 5))))?.odd.length;
    expect([far(50), far(5000)]).toEqual([1, 0]);
  });

  it('leaves out unknown values, and is null for fewer than three', () => {
    expect(spreadOf(ranks(4, (rank) => (rank === 0 ? Number.NaN : rank)))?.count).toBe(3);
    expect(spreadOf(ranks(4, (rank) => (rank < 2 ? Number.NaN : rank)))).toBeNull();
  });

  it('has one bin for equal values', () => {
    const spread = spreadOf(ranks(5, () => 7));
    expect([spread?.bins, spread?.odd]).toEqual([[{ low: 7, high: 7, count: 5 }], []]);
  });

  it('is of the mean step or of one step', () => {
    const steps = {
      values: [
        [1, 3],
        [5, null],
      ],
      steps: [10, 11],
      scale: 10,
      is_high_bad: true,
    } as unknown as RankSteps;
    const grid = gridOf(steps);
    expect([...valuesOf(grid, null)]).toEqual([20, 50]);
    expect([...valuesOf(grid, 1)]).toEqual([30, Number.NaN]);
  });
});
