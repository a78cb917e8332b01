import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { StepRow } from '../api/types.gen';
import { adjacentStep, stepsOfTime, timeOfSteps } from './step_choice';

/** Steps 5, 6, 7, … of 100 ns each, with 10 ns in between. */
const stepsOf = (count: number): StepRow[] =>
  Array.from({ length: count }, (_, at) => ({
    number: 5 + at,
    name: `ProfilerStep#${5 + at}`,
    start_ns: at * 110,
    duration_ns: 100,
    parts_ns: [],
    host_start_ns: at * 110,
    host_end_ns: at * 110 + 100,
  }));

const beside = (step: number | null, by: -1 | 1): number | undefined =>
  adjacentStep(stepsOf(3), { step, time: null }, by)?.number;

describe('the step beside', () => {
  it('is the neighbour, and the last stays', () => {
    expect([beside(6, -1), beside(6, 1), beside(5, -1), beside(7, 1)]).toEqual([5, 7, 5, 7]);
  });

  it('of the whole recording is the first, or backwards the last', () => {
    expect([beside(null, 1), beside(null, -1)]).toEqual([5, 7]);
  });

  it('of a step that is not there is the nearest on that side', () => {
    expect([beside(4, 1), beside(99, -1), beside(99, 1)]).toEqual([5, 7, undefined]);
  });

  it('of a time lies outside of it, where there is one', () => {
    const steps = stepsOf(3);
    const time = { startNs: 110, endNs: 215 };
    expect(adjacentStep(steps, { step: null, time }, 1)?.number).toBe(7);
    expect(adjacentStep(steps, { step: null, time }, -1)?.number).toBe(5);
    expect(adjacentStep([], { step: null, time }, 1)).toBeUndefined();
  });
});

it('goes from two steps to their time and back, in either order', () => {
  const steps = stepsOf(20);
  const some = fc.nat({ max: 19 });
  fc.assert(
    fc.property(some, some, (a, b) => {
      const [one, other] = [steps[a] as StepRow, steps[b] as StepRow];
      expect(stepsOfTime(steps, timeOfSteps(one, other))).toEqual([
        Math.min(one.number, other.number),
        Math.max(one.number, other.number),
      ]);
    }),
  );
  expect(stepsOfTime(steps, { startNs: 1, endNs: 210 })).toBeNull();
});
