import fc from 'fast-check';
import { expect, it } from 'vitest';
import { squarified } from './squarified';

const box = { left: 0, top: 0, width: 600, height: 400 };

it('lays the book’s example out as the book does', () => {
  const areas = squarified([6, 6, 4, 3, 2, 2, 1], { left: 0, top: 0, width: 6, height: 4 });
  const rounded = areas.map((each) => Object.values(each).map((value) => +value.toFixed(2)));
  expect(rounded).toEqual([
    [0, 0, 3, 2],
    [0, 2, 3, 2],
    [3, 0, 1.71, 2.33],
    [4.71, 0, 1.29, 2.33],
    [3, 2.33, 1.2, 1.67],
    [4.2, 2.33, 1.2, 1.67],
    [5.4, 2.33, 0.6, 1.67],
  ]);
});

it('gives every value its share of the area, within the box, and none overlaps another', () => {
  fc.assert(
    fc.property(
      fc.array(fc.double({ min: 1, max: 1e9, noNaN: true }), { minLength: 1, maxLength: 40 }),
      (values) => {
        const sorted = values.toSorted((a, b) => b - a);
        const total = sorted.reduce((sum, value) => sum + value, 0);
        const found = squarified(sorted, box);
        expect(found).toHaveLength(sorted.length);
        for (const [at, { left, top, width, height }] of found.entries()) {
          const area = ((sorted[at] ?? 0) / total) * box.width * box.height;
          expect(Math.abs(width * height - area)).toBeLessThan(1e-2);
          expect(Math.min(left, top)).toBeGreaterThanOrEqual(0);
          expect(left + width).toBeLessThanOrEqual(box.width + 1e-4);
          expect(top + height).toBeLessThanOrEqual(box.height + 1e-4);
          for (const other of found.slice(at + 1)) {
            const across =
              Math.min(left + width, other.left + other.width) - Math.max(left, other.left);
            const down =
              Math.min(top + height, other.top + other.height) - Math.max(top, other.top);
            expect(Math.max(0, across) * Math.max(0, down)).toBeLessThan(1e-1);
          }
        }
      },
    ),
  );
});

it('draws nothing where there is nothing, or no room', () => {
  expect(squarified([], box)).toEqual([]);
  expect(squarified([0, 0], box)).toEqual([]);
  expect(squarified([1], { ...box, width: 0 })).toEqual([]);
});
