import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { RankSteps } from '../../../api/types.gen';
import { contrast } from '../../../canvas/colours';
import { rangesOf } from '../ranks';
import { figure, gridOf, type Line, linesOf, nameOfLine, type Order } from './grid';
import { cellLabels } from './labels';
import {
  cellAt,
  clampedLines,
  everyNth,
  layoutOf,
  linesFrom,
  revealedLine,
  zoomedLines,
} from './layout';
import { type Cells, raster } from './raster';
import { ramp, type Scale, scaleOf, shadeAt } from './scale';

type Values = (number | null)[][];

const stepsOf = (values: Values, patch: Partial<RankSteps> = {}): RankSteps => ({
  schema: 1,
  metric: 'step',
  label: 'Step time',
  help: '',
  unit: 'ns',
  is_high_bad: true,
  scale: 1,
  workers: values.map((_, row) => `w${row}`),
  ranks: values.map((_, row) => row),
  hosts: values.map(() => null),
  steps: (values[0] ?? []).map((_, at) => at + 10),
  values,
  left_out_count: 0,
  waiting_count: 0,
  empty: '',
  ...patch,
});

const rowsOf = (lines: readonly Line[]): (number | string)[] =>
  lines.map((line) => (line.kind === 'rank' ? line.row : `${line.ranks.first}-${line.ranks.last}`));

const SCALE: Scale = { low: 0, high: 100, isDiverging: false, isCutLow: false, isCutHigh: false };

function cellsOf(steps: RankSteps, patch: Partial<Cells> = {}): Cells {
  const grid = gridOf(steps);
  const lines = linesOf(steps, grid, { order: 'rank', missing: [] });
  const { is_high_bad: isHighBad } = steps;
  return { grid, lines, order: 'rank', norm: 'absolute', scale: SCALE, isHighBad, ...patch };
}

describe('the metrics', () => {
  const steps = stepsOf(
    [
      [1, 2, null],
      [3, 2, 8],
      [8, null, 2],
    ],
    { scale: 10 },
  );

  it('are scaled, with medians of known values', () => {
    const grid = gridOf(steps);
    expect([...grid.medians]).toEqual([30, 20, 50]);
    expect(figure(grid, 2, 0, 'absolute')).toBe(80);
    expect(figure(grid, 2, 0, 'median')).toBe(50);
    expect(figure(grid, 0, 2, 'median')).toBeNaN();
    expect([...grid.excess]).toEqual([-10, 10, 10]);
  });

  it('are worse if lower where high values are good', () => {
    expect([...gridOf({ ...steps, is_high_bad: false }).excess]).toEqual([10, -10, -10]);
  });

  it('have the same medians as a sort', () => {
    const cell = fc.option(fc.integer({ min: 0, max: 1000 }));
    const table = fc.array(fc.array(cell, { minLength: 3, maxLength: 3 }), { minLength: 1 });
    fc.assert(
      fc.property(table, (values) => {
        const { medians } = gridOf(stepsOf(values));
        for (let column = 0; column < 3; column += 1) {
          const known = values
            .map((row) => row[column])
            .filter((value): value is number => typeof value === 'number')
            .sort((a, b) => a - b);
          const middle = (known.length - 1) / 2;
          const low = known[Math.floor(middle)] ?? Number.NaN;
          const high = known[Math.ceil(middle)] ?? Number.NaN;
          expect(medians[column]).toBe((low + high) / 2);
        }
      }),
    );
  });
});

describe('the lines', () => {
  const steps = stepsOf([[5], [9], [1], [null]], {
    ranks: [4, 1, 0, null],
    hosts: ['node10', 'node2', 'node10', null],
  });
  const lines = (order: Order, missing = ''): (number | string)[] =>
    rowsOf(linesOf(steps, gridOf(steps), { order, missing: rangesOf(missing) }));

  it('are sorted by rank, including missing ranks', () => {
    expect(lines('rank')).toEqual([2, 1, 0, 3]);
    expect(lines('rank', '2-3, 7')).toEqual([2, 1, '2-3', 0, '7-7', 3]);
  });

  it('are sorted by node or value, with unknown values last', () => {
    expect(lines('node', '2-3')).toEqual([1, 2, 0, 3]);
    expect(lines('excess')).toEqual([1, 0, 2, 3]);
  });

  it('are named by rank, else by worker', () => {
    expect(nameOfLine({ kind: 'rank', row: 0 }, steps)).toBe('rank 4');
    expect(nameOfLine({ kind: 'rank', row: 3 }, steps)).toBe('w3');
    expect(nameOfLine({ kind: 'missing', ranks: { first: 2, last: 3 } }, steps)).toBe('ranks 2–3');
  });
});

describe('the scale', () => {
  it('ranges from the minimum to the maximum', () => {
    const grid = gridOf(stepsOf([[5, 20, null]]));
    expect(scaleOf(grid, { norm: 'absolute', floor: null })).toEqual({
      low: 5,
      high: 20,
      isDiverging: false,
      isCutLow: false,
      isCutHigh: false,
    });
  });

  it('ignores values below its floor', () => {
    const scale = scaleOf(gridOf(stepsOf([[-5, 20]])), { norm: 'absolute', floor: 0 });
    expect([scale.low, scale.isCutLow]).toEqual([0, true]);
    expect(shadeAt(scale, -5)).toBe(shadeAt(scale, 0));
  });

  it('is symmetric around the median', () => {
    const scale = scaleOf(gridOf(stepsOf([[0], [1], [10]])), { norm: 'median', floor: null });
    expect([scale.low, scale.high, scale.isDiverging]).toEqual([-9, 9, true]);
  });

  it('ignores outliers in a large heat map', () => {
    const values = Array.from({ length: 100 }, (_, row) =>
      Array.from({ length: 100 }, (__, at) => (row === 0 && at === 0 ? 1e9 : 50)),
    );
    const scale = scaleOf(gridOf(stepsOf(values)), { norm: 'absolute', floor: null });
    expect([scale.high, scale.isCutHigh]).toEqual([50, true]);
  });

  it('is monotonic, with no colour for unknown values', () => {
    const value = fc.double({ min: -50, max: 150, noNaN: true });
    fc.assert(
      fc.property(value, value, (a, b) => {
        expect(shadeAt(SCALE, Math.min(a, b))).toBeLessThanOrEqual(shadeAt(SCALE, Math.max(a, b)));
      }),
    );
    expect(shadeAt(SCALE, Number.NaN)).toBe(-1);
    expect(shadeAt({ ...SCALE, low: 3, high: 3 }, 3)).toBe(0);
  });

  it.each(['light', 'dark'] as const)('has monotonic contrast in the %s theme', (theme) => {
    const surface = theme === 'light' ? '#ffffff' : '#161a21';
    const contrasts = ramp(false, theme, true).map((colour) => contrast(colour, surface));
    const ordered = [...contrasts].sort((a, b) => a - b);
    expect(contrasts.map((value) => value.toFixed(1))).toEqual(
      ordered.map((value) => value.toFixed(1)),
    );
    expect(contrasts.at(-1)).toBeGreaterThan(7);
  });

  it('has its strong end at bad values', () => {
    expect(ramp(false, 'light', false)).toEqual(ramp(false, 'light', true).reverse());
  });
});

describe('the pixels', () => {
  const colours = Uint32Array.from({ length: 256 }, (_, at) => at + 1);
  const ROWS = 300;
  const values = Array.from({ length: ROWS }, (_, row) => [row === 77 ? 100 : 1, 2]);
  const all = { from: 0, to: ROWS, colours };

  it('show the worst of the cells that share one', () => {
    const cells = cellsOf(stepsOf(values));
    for (const heightPx of [1, 7, 40, 150, 299]) {
      const { pixels } = raster(cells, { ...all, size: { widthPx: 2, heightPx } });
      expect(pixels.filter((pixel) => pixel === 256)).toHaveLength(1);
    }
  });

  it('show the minimum where low values are bad', () => {
    const low = values.map(([value, other]) => [100 - (value ?? 0), other ?? null]);
    const cells = cellsOf(stepsOf(low, { is_high_bad: false }));
    const { pixels } = raster(cells, { ...all, size: { widthPx: 1, heightPx: 1 } });
    expect([...pixels]).toEqual([1]);
  });

  it('are at most one per cell, and transparent for unknown values', () => {
    const steps = stepsOf([
      [0, null],
      [100, 100],
    ]);
    const cells = cellsOf(steps, {
      lines: [
        { kind: 'rank', row: 0 },
        { kind: 'missing', ranks: { first: 5, last: 9 } },
        { kind: 'rank', row: 1 },
      ],
    });
    const size = { widthPx: 900, heightPx: 900 };
    const found = raster(cells, { from: 0, to: 3, colours, size });
    expect([found.widthPx, found.heightPx]).toEqual([2, 3]);
    expect([...found.pixels]).toEqual([1, 0, 0, 0, 256, 256]);
  });

  it('are fast for a thousand ranks in hundreds of steps', () => {
    const many = Array.from({ length: 1024 }, (_, row) =>
      Array.from({ length: 300 }, (__, at) => (row * 31 + at * 17) % 1000),
    );
    const cells = cellsOf(stepsOf(many));
    const began = performance.now();
    raster(cells, { from: 0, to: 1024, colours, size: { widthPx: 900, heightPx: 440 } });
    expect(performance.now() - began).toBeLessThan(400);
  });
});

describe('the layout', () => {
  const view = { start: 10, end: 20 };
  const layout = layoutOf({ widthPx: 88 + 2 + 400, heightPx: 24 + 200 }, view, 4);

  it('finds the cell at a point, and none outside the plot', () => {
    expect(cellAt(layout, view, { x: 88 + 150, y: 24 + 50 })).toEqual({ line: 12, column: 1 });
    expect(cellAt(layout, view, { x: 80, y: 60 })).toBeNull();
    expect(cellAt(layout, view, { x: 200, y: 20 })).toBeNull();
    expect(cellAt(layout, view, { x: 88 + 400, y: 60 })).toBeNull();
  });

  it('keeps the visible lines in bounds at every zoom', () => {
    const count = fc.integer({ min: 1, max: 2000 });
    const share = fc.double({ min: 0, max: 1, noNaN: true });
    fc.assert(
      fc.property(count, share, fc.array(fc.tuple(share, fc.boolean())), (lines, from, turns) => {
        let shown = clampedLines(from * lines, Math.min(lines, 50), lines);
        for (const [at, isIn] of turns) {
          const line = shown.start + at * (shown.end - shown.start);
          shown = zoomedLines(shown, line, isIn ? 0.5 : 2, lines);
          expect(shown.start).toBeGreaterThanOrEqual(0);
          expect(shown.end).toBeLessThanOrEqual(lines + 1e-6);
          expect(shown.end - shown.start).toBeGreaterThanOrEqual(Math.min(8, lines) - 1e-6);
        }
      }),
    );
  });

  it('scrolls as little as needed to reveal a line', () => {
    expect(revealedLine(view, 15, 100)).toBe(view);
    expect(revealedLine(view, 3, 100)).toEqual({ start: 3, end: 13 });
    expect(revealedLine(view, 40, 100)).toEqual({ start: 31, end: 41 });
  });

  it('parses lines from the URL, and falls back to all of them', () => {
    expect(linesFrom('5-20', 100)).toEqual({ start: 5, end: 20 });
    for (const text of [undefined, 'x', '20-5', '500-600', '-1-4']) {
      expect(linesFrom(text, 100)).toEqual({ start: 0, end: 100 });
    }
  });

  it('labels round numbers', () => {
    expect([20, 6, 0.43].map((px) => everyNth(px, 13))).toEqual([1, 4, 32]);
  });
});

describe('the label of a cell', () => {
  const steps = stepsOf([[1_000_000], [3_000_000], [null]], { hosts: ['node1', null, null] });

  it('has rank, step, value and the difference from the median', () => {
    expect(cellLabels(cellsOf(steps), steps, { line: 0, column: 0 })).toEqual([
      'Rank 0, step 10, node1',
      'Step time: 1.00 ms',
      'Median of the step: 2.00 ms (−1.00 ms)',
    ]);
  });

  it('states what was not recorded', () => {
    expect(cellLabels(cellsOf(steps), steps, { line: 2, column: 0 })).toEqual([
      'Rank 2, step 10',
      'Step time: not recorded',
    ]);
    const missing: Line[] = [{ kind: 'missing', ranks: { first: 5, last: 5 } }];
    const cells = cellsOf(steps, { lines: missing });
    expect(cellLabels(cells, steps, { line: 0, column: 0 })).toEqual(['Rank 5', 'Not recorded']);
  });
});
