import { render, screen } from '@testing-library/react';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { StepUse, TimeDistribution } from '../api/types.gen';
import { Histogram, positionOf } from './histogram';
import { columnsOf } from './step_bars';

const distribution = (
  edges: number[],
  counts: number[],
  isLogarithmic: boolean,
): TimeDistribution => ({
  count: counts.reduce((sum, each) => sum + each, 0),
  total_ns: 0,
  min_ns: edges[0] ?? 0,
  mean_ns: 0,
  p50_ns: edges[1] ?? 0,
  p95_ns: edges.at(-1) ?? 0,
  max_ns: edges.at(-1) ?? 0,
  edges_ns: edges,
  counts,
  is_logarithmic: isLogarithmic,
});

it('lays bins that grow by a factor equally wide, and others by their length', () => {
  const factor = distribution([10, 100, 1000], [1, 1], true);
  expect(positionOf(factor, 100)).toBeCloseTo(0.5);
  const length = distribution([0, 25, 100], [1, 1], false);
  expect([positionOf(length, 0), positionOf(length, 25), positionOf(length, 100)]).toEqual([
    0, 0.25, 1,
  ]);
});

it('shows a bin of one call among thousands', () => {
  render(<Histogram of={distribution([0, 10, 20], [9999, 1], false)} what="call" label="time" />);
  const bars = [...document.querySelectorAll('.histogram-bar')];
  expect(bars.map((bar) => Number(bar.getAttribute('height')) >= 2)).toEqual([true, true]);
  expect(screen.getByText('10,000')).toBeTruthy();
});

it('puts steps together without losing time or calls', () => {
  fc.assert(
    fc.property(
      fc.array(fc.nat(1000), { minLength: 1, maxLength: 300 }),
      fc.integer({ min: 1, max: 50 }),
      (times, most) => {
        const steps: StepUse[] = times.map((time_ns, number) => ({
          number,
          call_count: 1,
          time_ns,
          device_ns: 0,
        }));
        const columns = columnsOf(steps, most);
        expect(columns.length).toBeLessThanOrEqual(most);
        const total = columns.reduce(
          (sum, column) => sum + column.timeNs * (column.last - column.first + 1),
          0,
        );
        expect(total).toBeCloseTo(
          times.reduce((sum, time) => sum + time, 0),
          3,
        );
      },
    ),
  );
});

it('draws no picture where all take as long', () => {
  render(<Histogram of={distribution([5000, 5001], [3], false)} what="call" label="time" />);
  expect(screen.queryByRole('img')).toBeNull();
  expect(screen.getByText('All take 5.00 µs.')).toBeTruthy();
});
