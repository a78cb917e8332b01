import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  between,
  clamped,
  fitted,
  lengthOf,
  panned,
  pxOf,
  type Range,
  revealed,
  valueAt,
  zoomed,
} from './viewport';

const BOUNDS: Range = { start: 0, end: 1_000_000 };
const views: fc.Arbitrary<Range> = fc
  .tuple(fc.integer({ min: 0, max: 999_000 }), fc.integer({ min: 1, max: 1_000_000 }))
  .map(([start, length]) => clamped({ start, end: start + length }, BOUNDS));

const isWithin = (view: Range, bounds: Range): boolean =>
  view.start >= bounds.start - 1e-6 && view.end <= bounds.end + 1e-6;

describe('pixels and values', () => {
  it('are each other’s inverse', () => {
    fc.assert(
      fc.property(
        views,
        fc.integer({ min: 1, max: 4000 }),
        fc.double({ min: 0, max: 1, noNaN: true }),
        (view, width, share) => {
          const value = view.start + share * lengthOf(view);
          expect(valueAt(view, width, pxOf(view, width, value))).toBeCloseTo(value, 3);
        },
      ),
    );
  });
});

describe('a view', () => {
  it('never leaves its bounds, however it is moved', () => {
    fc.assert(
      fc.property(
        views,
        fc.double({ min: 0.01, max: 100, noNaN: true }),
        fc.integer({ min: -2_000_000, max: 2_000_000 }),
        (view, factor, by) => {
          expect(isWithin(panned(view, BOUNDS, by), BOUNDS)).toBe(true);
          const at = valueAt(view, 100, 37);
          expect(isWithin(zoomed(view, BOUNDS, { factor, at }), BOUNDS)).toBe(true);
        },
      ),
    );
  });

  it('keeps its length when it is panned against an end', () => {
    expect(panned({ start: 100, end: 300 }, BOUNDS, -500)).toEqual({ start: 0, end: 200 });
    expect(panned({ start: 100, end: 300 }, BOUNDS, 5e6)).toEqual({
      start: 999_800,
      end: 1_000_000,
    });
  });

  it('zooms around the point that is pointed at', () => {
    expect(zoomed({ start: 400, end: 800 }, BOUNDS, { factor: 0.5, at: 500 })).toEqual({
      start: 450,
      end: 650,
    });
  });

  it('comes no nearer than it may', () => {
    const view = zoomed({ start: 400, end: 800 }, BOUNDS, { factor: 0.001, at: 500, least: 40 });
    expect(lengthOf(view)).toBeCloseTo(40);
    expect(pxOf(view, 100, 500)).toBeCloseTo(25);
  });

  it('shows all where it is to show more than there is', () => {
    expect(clamped({ start: -5, end: 3e6 }, BOUNDS)).toEqual(BOUNDS);
  });

  it('fits a target with a margin', () => {
    expect(fitted({ start: 1000, end: 2000 }, BOUNDS, { margin: 0.1 })).toEqual({
      start: 900,
      end: 2100,
    });
    expect(fitted({ start: 1000, end: 1000 }, BOUNDS, { least: 50 })).toEqual({
      start: 975,
      end: 1025,
    });
  });

  it('is left alone where the target is in sight, else moved to its middle', () => {
    const view = { start: 100, end: 300 };
    expect(revealed(view, { start: 150, end: 160 }, BOUNDS)).toBe(view);
    expect(revealed(view, { start: 1000, end: 1010 }, BOUNDS)).toEqual({ start: 905, end: 1105 });
    expect(lengthOf(revealed(view, { start: 1000, end: 2000 }, BOUNDS))).toBeGreaterThan(1000);
  });
});

describe('the way from one view to another', () => {
  it('begins at the one and ends at the other', () => {
    fc.assert(
      fc.property(views, views, (from, to) => {
        expect(between(from, to, 0)).toEqual(from);
        expect(between(from, to, 1)).toEqual(to);
      }),
    );
  });

  it('keeps the point in place around which it zooms', () => {
    const from = { start: 0, end: 1000 };
    const to = zoomed(from, BOUNDS, { factor: 0.1, at: 300 });
    for (const share of [0.2, 0.5, 0.9]) {
      expect(pxOf(between(from, to, share), 100, 300)).toBeCloseTo(30);
    }
  });
});
