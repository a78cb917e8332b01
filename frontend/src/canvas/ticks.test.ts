import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { roundStep, ticksOf } from './ticks';

describe('marks on an axis of time', () => {
  it('stand at round times', () => {
    const { step, marks } = ticksOf({ start: 0, end: 1e9 }, 1000, 100);
    expect(step).toBe(1e8);
    expect(marks.map((mark) => mark.label).slice(0, 4)).toEqual([
      '0',
      '100 ms',
      '200 ms',
      '300 ms',
    ]);
  });

  it('are counted from a microsecond where they are finer than that', () => {
    const { anchor, marks } = ticksOf({ start: 1_234_567_100, end: 1_234_567_500 }, 400, 100);
    expect(anchor?.label).toBe('1,234.567 ms');
    expect(marks.map((mark) => mark.label)).toEqual([
      '+100 ns',
      '+200 ns',
      '+300 ns',
      '+400 ns',
      '+500 ns',
    ]);
  });

  it('cover the view, are far enough apart and never bear the same words', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 900_000_000_000 }),
        fc.integer({ min: 400, max: 100_000_000_000 }),
        fc.integer({ min: 300, max: 4000 }),
        (start, length, widthPx) => {
          const view = { start, end: start + length };
          const { marks, step } = ticksOf(view, widthPx);
          expect((step / length) * widthPx).toBeGreaterThanOrEqual(109.9);
          expect(marks[0]?.value).toBeLessThanOrEqual(start);
          expect(marks.at(-1)?.value).toBeGreaterThanOrEqual(view.end);
          expect(new Set(marks.map((mark) => mark.label)).size).toBe(marks.length);
        },
      ),
    );
  });

  it('are 1, 2 or 5 times a power of ten apart', () => {
    expect([1, 1.5, 2, 3, 6, 11, 499, 500, 501].map(roundStep)).toEqual([
      1, 2, 2, 5, 10, 20, 500, 500, 1000,
    ]);
  });
});
