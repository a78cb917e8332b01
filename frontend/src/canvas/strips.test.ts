import fc from 'fast-check';
import { expect, it } from 'vitest';
import { packed } from './colours';
import { PixelRows } from './strips';

const SOLID = packed('#ff0000');
const FAINT = packed('#00ff00', 80);

it('a run fills its pixels, cut at the row’s ends', () => {
  const rows = new PixelRows();
  rows.begin(4, 2);
  rows.run(1, -3, 2, SOLID);
  rows.run(0, 3, 9, SOLID);
  expect([...rows.pixels]).toEqual([0, 0, 0, SOLID, SOLID, SOLID, 0, 0]);
});

it('of two in one pixel the stronger is seen, whichever came first', () => {
  const rows = new PixelRows();
  rows.begin(2, 1);
  rows.run(0, 0, 1, SOLID);
  rows.run(0, 0, 1, FAINT);
  rows.run(0, 1, 2, FAINT);
  rows.run(0, 1, 2, SOLID);
  expect([...rows.pixels]).toEqual([SOLID, SOLID]);
});

it('begins empty, however it was left', () => {
  const rows = new PixelRows();
  rows.begin(3, 2);
  rows.run(1, 0, 3, SOLID);
  rows.begin(2, 3);
  expect([...rows.pixels.slice(0, 6)]).toEqual([0, 0, 0, 0, 0, 0]);
});

it('never writes into another row', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: -20, max: 20 }),
      fc.integer({ min: -20, max: 20 }),
      (from, to) => {
        const rows = new PixelRows();
        rows.begin(8, 3);
        rows.run(1, from, to, SOLID);
        expect([...rows.pixels.slice(0, 8), ...rows.pixels.slice(16)]).toEqual(
          new Array(16).fill(0),
        );
      },
    ),
  );
});
