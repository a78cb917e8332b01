import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeTile, type MadeSlice } from '../../../tests/timeline_tiles';
import {
  decodeTile,
  firstEndingAfter,
  levelAmong,
  levelOf,
  NO_EVENT,
  tileNs,
  tilesOf,
} from './tiles';

const slices: readonly MadeSlice[] = [
  { track: 5, row: 0, startNs: 0, endNs: 3000, name: 1, event: 10, category: 2 },
  { track: 5, row: 1, startNs: 100, endNs: 101, name: 2, event: 11 },
  { track: 5, row: 1, startNs: 101, endNs: 101.5, name: 3, event: 12 },
  { track: 7, row: 0, startNs: 2000, endNs: 2100, name: 4 },
];

describe('the level to draw', () => {
  it('is the finest that is needed where there are all', () => {
    expect(levelAmong([], 1000)).toBe(9);
  });

  it('is of those that there are the coarsest that is fine enough, else the finest', () => {
    expect([0.5, 70, 600, 1500, 1e9].map((ns) => levelAmong([12, 9, 6], ns))).toEqual([
      6, 6, 9, 9, 12,
    ]);
  });
});

describe('a tile', () => {
  it('is read without copies, by track and row', () => {
    const tile = decodeTile(encodeTile(slices, [5, 7], 1, 0));
    expect(tile.rows.get(5)).toEqual([
      { from: 0, to: 1 },
      { from: 1, to: 2 },
    ]);
    expect(tile.rows.get(7)).toEqual([{ from: 2, to: 3 }]);
    expect([...tile.slices.name]).toEqual([1, 2, 4]);
    expect([...tile.slices.event]).toEqual([10, 11, NO_EVENT]);
    expect([...tile.slices.count]).toEqual([1, 2, 1]);
    expect([...tile.slices.x]).toEqual([0, 50 * 16, 1000 * 16]);
    expect([...tile.slices.width]).toEqual([16384, 16, 24 * 16]);
    expect([...tile.slices.category]).toEqual([2, 0, 0]);
    expect([...tile.slices.busy]).toEqual([255, 191, 255]);
    expect(tile.slices.name.buffer.byteLength).toBe(tile.bytes);
  });

  it('is rejected if invalid', () => {
    expect(() => decodeTile(new TextEncoder().encode('<html>').buffer as ArrayBuffer)).toThrow(
      'This is not a timeline tile: it begins with “<htm”.',
    );
  });

  it('may be empty', () => {
    const tile = decodeTile(encodeTile(slices, [9], 3, 4));
    expect([tile.level, tile.tile, tile.rows.size, tile.slices.name.length]).toEqual([3, 4, 0, 0]);
  });
});

describe('levels and tiles', () => {
  it('have a pixel of half to one screen pixel', () => {
    fc.assert(
      fc.property(fc.double({ min: 1, max: 1e9, noNaN: true }), (nsPerPx) => {
        const size = 2 ** levelOf(nsPerPx);
        expect(size).toBeLessThanOrEqual(nsPerPx);
        expect(size * 2).toBeGreaterThan(nsPerPx);
      }),
    );
  });

  it('cover exactly the visible range', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 20 }),
        fc.integer({ min: 0, max: 1e9 }),
        fc.integer({ min: 1, max: 1e8 }),
        (level, start, length) => {
          const { first, last } = tilesOf(level, { start, end: start + length });
          expect(first * tileNs(level)).toBeLessThanOrEqual(start);
          expect((first + 1) * tileNs(level)).toBeGreaterThan(start);
          expect((last + 1) * tileNs(level)).toBeGreaterThanOrEqual(start + length);
          expect(last * tileNs(level)).toBeLessThan(start + length);
        },
      ),
    );
  });
});

it('the first slice that ends after a time equals that of a linear search', () => {
  const made: MadeSlice[] = Array.from({ length: 40 }, (_, at) => ({
    track: 1,
    row: 0,
    startNs: at * 20,
    endNs: at * 20 + 9,
    name: at,
    event: at,
  }));
  const { slices: columns, rows } = decodeTile(encodeTile(made, [1], 0, 0));
  const span = rows.get(1)?.[0] ?? { from: 0, to: 0 };
  for (let part = 0; part < 16384; part += 7) {
    const slow = Array.from(columns.x).findIndex((x, at) => x + (columns.width[at] ?? 0) > part);
    expect(firstEndingAfter(columns, span, part)).toBe(slow === -1 ? span.to : slow);
  }
});
