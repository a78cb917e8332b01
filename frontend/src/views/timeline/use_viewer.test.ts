import { renderHook } from '@testing-library/react';
import { expect, it, vi } from 'vitest';
import type { Range } from '../../canvas/viewport';
import { useStepInSight } from './use_viewer';
import type { Viewer } from './viewer';

const BOUNDS = { start: 0, end: 1000 };
const STEP = { start: 300, end: 400 };

/** Where the view is led to, once a step's time is known that was not at first. */
function ledTo(wasAwaited: boolean, goal: Range, time: Range | null): unknown[] {
  const goTo = vi.fn();
  const viewer = { bounds: BOUNDS, goal, goTo } as unknown as Viewer;
  const { rerender } = renderHook(
    (given: { isAwaited: boolean; time: Range | null }) =>
      useStepInSight(viewer, given.isAwaited, given.time),
    { initialProps: { isAwaited: wasAwaited, time: null as Range | null } },
  );
  rerender({ isAwaited: false, time });
  rerender({ isAwaited: false, time: { start: 500, end: 600 } });
  return goTo.mock.calls;
}

it('zooms to a step once its time is loaded', () => {
  expect(ledTo(true, BOUNDS, STEP)).toEqual([[STEP]]);
});

it('does not zoom to it if the view has moved since', () => {
  expect(ledTo(true, { start: 10, end: 20 }, STEP)).toEqual([]);
});

it('ignores a missing step, and one selected later', () => {
  expect(ledTo(true, BOUNDS, null)).toEqual([]);
  expect(ledTo(false, BOUNDS, STEP)).toEqual([]);
});
