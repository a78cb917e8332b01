import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TextFitter } from './text';

/** Letters of 10 px, narrow ones of 4, `…` of 10. */
const measure = (text: string): number =>
  [...text].reduce((sum, letter) => sum + ('il.'.includes(letter) ? 4 : 10), 0);
const fitter = new TextFitter(measure);

describe('words that fit', () => {
  it('stay whole where there is room', () => {
    expect(fitter.fit('add', 30)).toBe('add');
  });

  it('are cut at the end, with an ellipsis', () => {
    expect(fitter.fit('convolution', 60)).toBe('convo…');
    expect(fitter.fit('illilli', 26)).toBe('illi…');
  });

  it('are left out where not even two letters fit', () => {
    expect(fitter.fit('add', 25)).toBe('');
  });

  it('never are wider than the room, and are cut only where they have to be', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme' }),
        fc.integer({ min: 0, max: 300 }),
        (text, most) => {
          const cut = fitter.fit(text, most);
          expect(fitter.widthPx(cut)).toBeLessThanOrEqual(most);
          if (fitter.widthPx(text) <= most) expect(cut).toBe(text);
          expect(cut.isWellFormed() || !text.isWellFormed()).toBe(true);
        },
      ),
    );
  });
});
