import { expect, it } from 'vitest';
import { movedIndex } from './list_keys';

it('keys move through a list, and stop at its ends', () => {
  const keys = ['ArrowDown', 'ArrowUp', 'PageDown', 'PageUp', 'Home', 'End', 'x'];
  expect(keys.map((key) => movedIndex(key, 12, 15))).toEqual([13, 11, 14, 2, 0, 14, null]);
  expect(movedIndex('Home', 12, 15, { isTyped: true })).toBeNull();
  expect(movedIndex('ArrowDown', 14, 15)).toBe(14);
  expect(movedIndex('ArrowDown', 14, 15, { isRing: true })).toBe(0);
  expect(movedIndex('ArrowUp', 0, 0, { isRing: true })).toBeNull();
});
