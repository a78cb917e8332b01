import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { encodeTile, type MadeSlice, tileSource } from '../../../tests/timeline_tiles';
import { PixelRows } from '../../canvas/strips';
import { type Painting, paintRow } from './paint_row';
import { Palette } from './palette';
import { pick } from './pick';
import { TileStore } from './tile_store';
import { tileNs, tilesOf } from './tiles';

const WIDTH_PX = 100;
const categories = [
  { id: 'kernel', label: 'Kernel' },
  { id: 'cpu', label: 'CPU' },
];

async function storeOf(
  slices: readonly MadeSlice[],
  wanted: readonly (readonly [number, number])[],
): Promise<TileStore> {
  const store = new TileStore(tileSource(slices), () => undefined, {
    bytes: 1e9,
    atOnce: 999,
    retryMs: 0,
  });
  store.request(wanted.map(([level, tile]) => ({ level, tile, tracks: [0] })));
  await new Promise((done) => setTimeout(done, 0));
  return store;
}

function paintingOf(
  store: TileStore,
  view: Painting['view'],
  patch: Partial<Painting> = {},
): Painting {
  const pixels = new PixelRows();
  pixels.begin(WIDTH_PX, 1);
  return {
    store,
    palette: new Palette(categories),
    theme: 'light',
    view,
    level: 0,
    pixels,
    labels: [],
    merged: [],
    leastLabelPx: 30,
    highlightedNames: null,
    highlightedEvents: null,
    ...patch,
  };
}

const LINE = { line: 0, track: 0, row: 0, hasLabels: true };
const filled = (painting: Painting): boolean[] =>
  [...painting.pixels.pixels].map((pixel) => pixel !== 0);

describe('a row of slices', () => {
  it('fills the pixels that a linear search finds busy', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.integer({ min: 1, max: 60 }), fc.integer({ min: 1, max: 300 })), {
          maxLength: 40,
        }),
        fc.integer({ min: 0, max: 2000 }),
        fc.integer({ min: 0, max: 3 }),
        async (gaps, start, zoom) => {
          let at = 0;
          const slices = gaps.map(([gap, length], event) => {
            const startNs = at + gap;
            at = startNs + length;
            return { track: 0, row: 0, startNs, endNs: at, name: event, event };
          });
          const view = { start, end: start + WIDTH_PX * 2 ** zoom };
          const { first, last } = tilesOf(zoom, view);
          const store = await storeOf(
            slices,
            Array.from({ length: last - first + 1 }, (_, n) => [zoom, first + n] as const),
          );
          const painting = paintingOf(store, view, { level: zoom });
          paintRow(painting, LINE);
          const drawn = filled(painting);
          for (let px = 0; px < WIDTH_PX; px += 1) {
            const [from, to] = [view.start + px * 2 ** zoom, view.start + (px + 1) * 2 ** zoom];
            const wholly = slices.some(
              (slice) => slice.startNs <= from && slice.endNs >= to + 2 ** zoom,
            );
            // A merged slice is drawn in the tile’s pixel, which may lie over two of the screen’s.
            const nothing = !slices.some(
              (slice) => slice.startNs < to + 2 ** zoom && slice.endNs > from - 2 ** zoom,
            );
            if (wholly) expect(drawn[px]).toBe(true);
            if (nothing) expect(drawn[px]).toBe(false);
          }
        },
      ),
      { numRuns: 60 },
    );
  });

  it('has labels that fit, including for slices across two tiles', async () => {
    const slices = [{ track: 0, row: 0, startNs: 1000, endNs: 1050, name: 7, event: 1 }];
    const store = await storeOf(slices, [
      [0, 0],
      [0, 1],
    ]);
    const painting = paintingOf(store, { start: 990, end: 1090 });
    paintRow(painting, LINE);
    expect(painting.labels).toEqual([{ line: 0, name: 7, fromPx: 10, toPx: 60, isDim: false }]);
    expect(filled(painting).slice(9, 61)).toEqual([
      false,
      ...new Array(49).fill(true),
      false,
      false,
    ]);
    expect(tileNs(0)).toBe(1024);
  });

  it('marks merged slices, and thins partly busy pixels', async () => {
    const slices = Array.from({ length: 100 }, (_, at) => ({
      track: 0,
      row: 0,
      startNs: at * 8,
      endNs: at * 8 + 2,
      name: 1,
      event: at,
    }));
    const store = await storeOf(slices, [[4, 0]]);
    const painting = paintingOf(store, { start: 0, end: 1600 }, { level: 4 });
    paintRow(painting, LINE);
    expect(painting.merged).toEqual([{ line: 0, fromPx: 0, toPx: 50 }]);
    const alphas = [...painting.pixels.pixels].map((pixel) => pixel >>> 24);
    expect(new Set(alphas)).toEqual(new Set([135, 0]));
    // Also where the track is shut: it stands for as many, though its rows have no room for words.
    const shut = paintingOf(store, { start: 0, end: 1600 }, { level: 4 });
    paintRow(shut, { ...LINE, hasLabels: false });
    expect([shut.merged, shut.labels]).toEqual([[{ line: 0, fromPx: 0, toPx: 50 }], []]);
  });

  it('dims slices that do not match the filter', async () => {
    const slices = [
      { track: 0, row: 0, startNs: 0, endNs: 40, name: 0, event: 5 },
      { track: 0, row: 0, startNs: 50, endNs: 90, name: 1, event: 6 },
    ];
    const store = await storeOf(slices, [[0, 0]]);
    const painting = paintingOf(
      store,
      { start: 0, end: 100 },
      { highlightedNames: Uint8Array.of(0, 1) },
    );
    paintRow(painting, LINE);
    expect(painting.labels.map((label) => label.isDim)).toEqual([true, false]);
    const alphas = [...painting.pixels.pixels].map((pixel) => pixel >>> 24);
    expect([alphas[10], alphas[60]]).toEqual([46, 255]);
    const other = paintingOf(store, { start: 0, end: 100 }, { highlightedEvents: new Set([5]) });
    paintRow(other, LINE);
    expect(other.labels.map((label) => label.isDim)).toEqual([false, true]);
    // A finding that is looked at while something is searched for: both are seen.
    const wanted = { highlightedNames: Uint8Array.of(0, 1), highlightedEvents: new Set([5]) };
    const both = paintingOf(store, { start: 0, end: 100 }, wanted);
    paintRow(both, LINE);
    expect(both.labels.map((label) => label.isDim)).toEqual([false, false]);
  });

  it('is drawn from a coarser level until its tile is loaded', async () => {
    const slices = [{ track: 0, row: 0, startNs: 0, endNs: 64, name: 0, event: 5 }];
    const store = await storeOf(slices, [[5, 0]]);
    const painting = paintingOf(store, { start: 0, end: 100 });
    paintRow(painting, LINE);
    expect(filled(painting).lastIndexOf(true)).toBe(62);
  });
});

describe('the slice at a point', () => {
  const slices = [
    { track: 0, row: 0, startNs: 1000, endNs: 2100, name: 3, event: 9, category: 1 },
    { track: 0, row: 0, startNs: 2110, endNs: 2120, name: 4 },
  ];

  it('is whole even if it spans several tiles', async () => {
    const store = await storeOf(slices, [
      [0, 0],
      [0, 1],
      [0, 2],
    ]);
    const spot = { track: 0, row: 0, timeNs: 1500, level: 0, toleranceNs: 3 };
    expect(pick(store, spot)).toEqual({
      track: 0,
      row: 0,
      name: 3,
      event: 9,
      count: 1,
      category: 1,
      busy: 1,
      startNs: 1000,
      endNs: 2100,
    });
  });

  it('is the nearest within reach, else null', async () => {
    const store = await storeOf(slices, [[0, 2]]);
    const at = (timeNs: number, row = 0): number | undefined =>
      pick(store, { track: 0, row, timeNs, level: 0, toleranceNs: 4 })?.name;
    expect([2103, 2107, 2104.5, 2200].map((timeNs) => at(timeNs))).toEqual([
      3,
      4,
      undefined,
      undefined,
    ]);
    expect(at(2115, 1)).toBeUndefined();
  });

  it('has the number of merged slices', async () => {
    const many = Array.from({ length: 4 }, (_, at) => ({
      track: 0,
      row: 0,
      startNs: 2 * at,
      endNs: 2 * at + 1,
      name: at,
      event: at,
    }));
    const store = await storeOf(many, [[3, 0]]);
    expect(pick(store, { track: 0, row: 0, timeNs: 3, level: 3, toleranceNs: 0 })).toMatchObject({
      count: 4,
      startNs: 0,
      endNs: 8,
    });
    expect(encodeTile(many, [0], 3, 0).byteLength % 2).toBe(0);
  });
});
