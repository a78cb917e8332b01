import { expect, it } from 'vitest';
import { legendOf, subtitleOf } from './exported';

it('an image has the names of the trace and the range', () => {
  expect(subtitleOf(['run', 'rank0', '1'], { start: 0, end: 2_000_000 })).toBe(
    'run, rank0, 1: 0.000 ms to 2.000 ms',
  );
});

it('an image’s legend has the categories with their colours', () => {
  const [kernel, copy] = legendOf(
    [
      { id: 'kernel', label: 'Kernel' },
      { id: 'memcpy', label: 'Copy' },
    ],
    'light',
  );
  expect([kernel?.label, copy?.label]).toEqual(['Kernel', 'Copy']);
  expect(kernel?.colour).not.toBe(copy?.colour);
});
