import { expect, it } from 'vitest';
import { jumpsOf, matchesIn } from './choices';

const ranks = (count: number) =>
  Array.from({ length: count }, (_, rank) => ({ label: `node-${1000 + rank}`, number: rank }));

it('finds a rank by its number before names that hold the digits', () => {
  const found = matchesIn(ranks(1024), '10').map(({ number }) => number);
  expect(found.slice(0, 12)).toEqual([10, 100, 101, 102, 103, 104, 105, 106, 107, 108, 109, 1000]);
  expect(matchesIn(ranks(1024), ' 512 ')[0]?.number).toBe(512);
});

it('finds by any part of a name, in any case', () => {
  const choices = [{ label: 'GPT-large' }, { label: 'resnet' }];
  expect(matchesIn(choices, 'gpt')).toEqual([{ label: 'GPT-large' }]);
  expect(matchesIn(choices, '')).toBe(choices);
  expect(matchesIn(choices, '7')).toEqual([]);
});

it('finds ranks by their machine', () => {
  const choices = [
    { label: 'w0', number: 0, about: 'node-12' },
    { label: 'w1', number: 12, about: 'node-13' },
  ];
  expect(matchesIn(choices, 'node-12').map(({ number }) => number)).toEqual([0]);
  expect(matchesIn(choices, '12').map(({ number }) => number)).toEqual([12, 0]);
});

it('jumps between ranges of many ranks, and offers none for few', () => {
  expect(jumpsOf(ranks(1024)).map(({ label }) => label)).toEqual([
    '0–127',
    '128–255',
    '256–383',
    '384–511',
    '512–639',
    '640–767',
    '768–895',
    '896–1023',
  ]);
  expect(jumpsOf(ranks(70)).map(({ at, label }) => `${at}: ${label}`)).toEqual([
    '0: 0–7',
    '8: 8–15',
    '16: 16–23',
    '24: 24–31',
    '32: 32–39',
    '40: 40–47',
    '48: 48–55',
    '56: 56–63',
    '64: 64–69',
  ]);
  expect(jumpsOf(ranks(16))).toEqual([]);
  expect(jumpsOf([...ranks(100), { label: 'other' }])).toEqual([]);
});
