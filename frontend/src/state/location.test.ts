import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  formatHash,
  formatHostHash,
  HOME,
  LANDING,
  type PageLocation,
  parseHash,
  parseHostHash,
} from './location';

const word = fc.string({ minLength: 1, unit: 'grapheme' });
const optional = fc.option(word, { nil: null });
const locations: fc.Arbitrary<PageLocation> = fc.record({
  view: word,
  run: optional,
  worker: optional,
  span: optional,
  group: optional,
  search: fc.string({ unit: 'grapheme' }),
  sort: fc.option(fc.record({ key: word, descending: fc.boolean() }), { nil: null }),
  step: fc.option(fc.nat(), { nil: null }),
  time: fc.option(
    fc
      .tuple(fc.nat(), fc.integer({ min: 1, max: 2 ** 31 }))
      .map(([startNs, length]) => ({ startNs, endNs: startNs + length })),
    { nil: null },
  ),
  event: fc.option(fc.nat(), { nil: null }),
  baseRun: optional,
  baseWorker: optional,
  baseSpan: optional,
  open: optional,
  options: fc.dictionary(fc.stringMatching(/^[a-z][a-z-]*$/), word, { noNullPrototype: true }),
});

describe('the hash', () => {
  it('brings every location back', () => {
    fc.assert(
      fc.property(locations, (location) => {
        expect(parseHash(formatHash(location))).toEqual(location);
      }),
    );
  });

  it('brings every location back through TensorBoard’s, and keeps what others wrote', () => {
    fc.assert(
      fc.property(locations, locations, (before, location) => {
        const present = formatHostHash('stepscope', before, '#stepscope&runFilter=a&p.other.x=1');
        const hash = formatHostHash('stepscope', location, present);
        expect(parseHostHash('stepscope', hash)).toEqual(location);
        expect(hash).toMatch(/^#stepscope&runFilter=a&p\.other\.x=1&p\.stepscope\.view=/);
      }),
    );
  });

  it('reads any text without failing', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(typeof parseHash(`#${text}`).view).toBe('string');
      }),
    );
    expect(parseHash('#view=%&step=x&sort=-&time=5-5&event=-1')).toEqual({ ...HOME, view: '%' });
  });

  it('stays short', () => {
    expect(formatHash(HOME)).toBe('#view=advice');
  });

  it('without a view leaves it to the page where it is empty, and is of the advice otherwise', () => {
    expect(parseHash('')).toEqual({ ...HOME, view: LANDING });
    expect(parseHash('#run=a')).toEqual({ ...HOME, run: 'a' });
    expect(parseHash('#view=runs').view).toBe('runs');
    expect(parseHash(formatHash({ ...HOME, view: LANDING })).view).toBe(LANDING);
  });
});

describe('TensorBoard’s hash', () => {
  it('is none of ours where it names another plugin, or says nothing of us', () => {
    expect(parseHostHash('stepscope', '#scalars&p.stepscope.view=kernels')).toBeNull();
    expect(parseHostHash('stepscope', '#stepscope')).toBeNull();
    expect(parseHostHash('stepscope', '#stepscope&p.stepscope.view=kernels')?.view).toBe('kernels');
  });
});
