import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NONE, naturalKey, orderOf, ranksOf, wordsOf } from './sorting';

const known = fc.oneof(fc.double({ noNaN: true }), fc.integer({ min: -3, max: 3 }));
const numbers = fc.array(fc.option(known), { maxLength: 60 });
const texts = fc.array(
  fc.option(fc.oneof(fc.string({ maxLength: 4 }), fc.constantFrom('a1', 'a10', 'A9', 'b'))),
  { maxLength: 60 },
);

type Value = number | string | null;

/** The slow obvious way: a stable sort by comparing, with what is not there behind it. */
function expected(values: readonly Value[], descending: boolean): number[] {
  const rows = values.map((_, at) => at);
  const there = rows.filter((at) => values[at] !== null);
  const compare = (a: Value, b: Value): number => {
    if (typeof a === 'number' && typeof b === 'number') return a - b;
    const [one, other] = [naturalKey(String(a)), naturalKey(String(b))];
    if (one !== other) return one < other ? -1 : 1;
    return String(a) === String(b) ? 0 : String(a) < String(b) ? -1 : 1;
  };
  const sign = descending ? -1 : 1;
  return [
    ...there.sort((a, b) => sign * compare(values[a] ?? null, values[b] ?? null) || a - b),
    ...rows.filter((at) => values[at] === null),
  ];
}

const ordered = (values: readonly Value[], descending: boolean): number[] => [
  ...orderOf(
    ranksOf(values, () => wordsOf(values)),
    descending,
  ),
];

describe('an order by ranks', () => {
  it('is that of a stable sort by comparing, of numbers', () => {
    fc.assert(
      fc.property(numbers, fc.boolean(), (values, descending) => {
        expect(ordered(values, descending)).toEqual(expected(values, descending));
      }),
    );
  });

  it('is that of a stable sort by comparing, of texts', () => {
    fc.assert(
      fc.property(texts, fc.boolean(), (values, descending) => {
        expect(ordered(values, descending)).toEqual(expected(values, descending));
      }),
    );
  });

  it('takes numbers among texts for texts', () => {
    expect(ordered(['10', 9, 'x', null], false)).toEqual([1, 0, 2, 3]);
  });
});

it('holds each text once', () => {
  const { codes, texts: found } = wordsOf(['b', null, 'a', 'b']);
  expect([[...codes], found]).toEqual([
    [0, NONE, 1, 0],
    ['b', 'a'],
  ]);
});

it('sets numbers in names by their value, of any length', () => {
  const names = ['k10', 'k9', 'K1', 'k99999999999999999999', 'k100000000000000000000'];
  const sorted = names.toSorted((a, b) => (naturalKey(a) < naturalKey(b) ? -1 : 1));
  expect(sorted.slice(0, 3)).toEqual(['K1', 'k9', 'k10']);
});
