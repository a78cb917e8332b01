import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { StepRow } from '../../api/types.gen';
import { columnsIn, columnsOf, timeOf } from './columns';

const step = (number: number, parts: readonly number[] = [number]): StepRow => ({
  number,
  name: `ProfilerStep#${number}`,
  start_ns: number * 100,
  duration_ns: 90,
  parts_ns: [...parts],
  host_start_ns: number * 100,
  host_end_ns: number * 100 + 100,
});

describe('steps as columns', () => {
  it('have one column each if they fit', () => {
    const columns = columnsOf([step(3, [5, 6]), step(4, [7, 8])], 2);
    expect(columns.map(({ name, partsNs }) => [name, partsNs])).toEqual([
      ['ProfilerStep#3', [5, 6]],
      ['ProfilerStep#4', [7, 8]],
    ]);
  });

  it('are averaged in groups if they do not fit', () => {
    const steps = [0, 1, 2, 3, 4].map((number) => step(number));
    const columns = columnsOf(steps, 2);
    expect(columns.map(({ name, partsNs }) => [name, partsNs])).toEqual([
      ['Steps 0 – 2, mean', [1]],
      ['Steps 3 – 4, mean', [3.5]],
    ]);
  });

  it('cover each step once at any width', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 500 }),
        fc.integer({ min: 1, max: 60 }),
        (all, most) => {
          const columns = columnsOf(
            Array.from({ length: all }, (_, number) => step(number)),
            most,
          );
          expect(columns.length).toBeLessThanOrEqual(most);
          const held = columns.flatMap(({ first, last }) =>
            Array.from({ length: last.number - first.number + 1 }, (_, at) => first.number + at),
          );
          expect(held).toEqual(Array.from({ length: all }, (_, number) => number));
        },
      ),
    );
  });
});

it('converts a drag to a time range and back to columns', () => {
  const columns = columnsOf([1, 2, 3, 4].map((number) => step(number)));
  const [, second, third] = columns;
  if (!second || !third) throw new Error('there are four');
  const time = timeOf(second, third);
  expect(time).toEqual({ startNs: 200, endNs: 400 });
  expect(columnsIn(columns, time)).toEqual([1, 2]);
  expect(columnsIn(columns, { startNs: 1000, endNs: 2000 })).toBeNull();
  expect(columnsIn(columns, null)).toBeNull();
});
