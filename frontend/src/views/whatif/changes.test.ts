import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { withOptions } from '../../state/option';
import {
  type Changes,
  changesOf,
  commandOf,
  factorOf,
  factorWords,
  isUnchanged,
  optionsOf,
  parametersOf,
  UNCHANGED,
  withScale,
} from './changes';
import { asPattern, exactly, globMatcher, readable } from './glob';
import { suggestionsFor } from './names';

const factors = fc.integer({ min: 0, max: 1_000_000 }).map((number) => number / 10_000);
const patterns = fc
  .string({ unit: 'grapheme', minLength: 1 })
  .filter((text) => !/[\n\r\u2028\u2029]/.test(text));
const everyChange: fc.Arbitrary<Changes> = fc.record({
  host: factors,
  device: factors,
  hasNoWaits: fc.boolean(),
  scales: fc.array(
    fc.record({
      target: fc.constantFrom('kernels', 'operators'),
      pattern: patterns,
      factor: factors,
    }),
    { maxLength: 4 },
  ),
  workers: fc.option(fc.integer({ min: 1, max: 1000 })),
  cores: fc.option(fc.integer({ min: 1, max: 1000 })),
  fixes: fc.uniqueArray(fc.stringMatching(/^[a-z][a-z-]*$/), { maxLength: 3 }),
});

describe('changes in the URL', () => {
  it('are read back as they were written', () => {
    fc.assert(
      fc.property(everyChange, (changes) => {
        expect(changesOf(withOptions({}, optionsOf(changes)))).toEqual(changes);
      }),
    );
  });

  it('leave nothing in the URL without changes', () => {
    expect(withOptions({ host: '0.5' }, optionsOf(UNCHANGED))).toEqual({});
    expect(isUnchanged(UNCHANGED)).toBe(true);
    expect(isUnchanged({ ...UNCHANGED, device: 0 })).toBe(false);
  });

  it('are as recorded where the URL is damaged', () => {
    const options = {
      host: 'fast',
      device: '-1',
      workers: '0.5',
      cores: 'x',
      scale: 'kernels:a\ngpu:a=1\nkernels:b=0.5',
    };
    expect(changesOf(options)).toEqual({
      ...UNCHANGED,
      scales: [{ target: 'kernels', pattern: 'b', factor: 0.5 }],
    });
  });

  it('are sent as the API takes them', () => {
    const changes = withScale({ ...UNCHANGED, host: 0.7 }, 'kernels', 'a=b');
    expect(parametersOf(changes)).toEqual({
      host: 0.7,
      device: 1,
      no_waits: false,
      scale: ['kernels:a=b=0.5'],
      workers: null,
      cores: null,
      fix: [],
    });
  });

  it('are a command of the terminal, quoted for a shell', () => {
    const changes = withScale(
      { ...UNCHANGED, host: 0.7, hasNoWaits: true, workers: 4, fixes: ['item-sync'] },
      'kernels',
      "*it's*",
    );
    expect(commandOf(changes, 'a b.json')).toBe(
      "stepscope whatif 'a b.json' --fix item-sync --host 0.7 --scale 'kernels:*it'\\''s*=0.5' --no-waits --workers 4",
    );
  });

  it('do not scale the same names twice', () => {
    const once = withScale(UNCHANGED, 'kernels', 'a');
    expect(withScale(once, 'kernels', 'a')).toBe(once);
    expect(withScale(once, 'operators', 'a').scales).toHaveLength(2);
  });
});

it('a factor is a number from 0 to 100', () => {
  expect(['0.5', '0', '100', ' 2 '].map(factorOf)).toEqual([0.5, 0, 100, 2]);
  expect(['', ' ', '-1', '101', 'x', 'NaN'].map(factorOf)).toEqual(Array(6).fill(null));
});

it('a factor is told in words', () => {
  expect([0, 0.7, 1, 1.25, 3].map(factorWords)).toEqual([
    'no time',
    '30 % less time',
    'as recorded',
    '25 % more time',
    '200 % more time',
  ]);
});

describe('glob patterns', () => {
  it.each([
    ['*gemm*', 'sgemm_64', true],
    ['*gemm*', 'GEMM', false],
    ['gemm', 'gemm2', false],
    ['a?c', 'abc', true],
    ['a?c', 'ac', false],
    ['[ab]x', 'bx', true],
    ['[!ab]x', 'bx', false],
    ['[a-c]x', 'cx', true],
    ['a[', 'a[', true],
    ['[]]', ']', true],
    ['*a*b*', 'xxaxxb', true],
    ['*a*b', 'xxaxxbx', false],
    ['', '', true],
    ['*', '', true],
  ])('%s and %s: %s', (pattern, name, isMatch) => {
    expect(globMatcher(pattern)(name)).toBe(isMatch);
  });

  it('of an exact name match that name only, and are shown as it', () => {
    fc.assert(
      fc.property(fc.string(), fc.string(), (name, other) => {
        expect(globMatcher(exactly(name))(name)).toBe(true);
        expect(globMatcher(exactly(name))(other)).toBe(name === other);
        expect(readable(exactly(name))).toBe(name);
      }),
    );
  });

  it('with wildcards are shown as they are', () => {
    expect(readable('*gemm*')).toBe('*gemm*');
    expect(readable('[ab]*')).toBe('[ab]*');
  });

  it('of typed text match names that contain it', () => {
    expect(asPattern('gemm')).toBe('*gemm*');
    expect(asPattern('gemm_?')).toBe('gemm_?');
  });

  it('take no time that grows with their wildcards', () => {
    const started = performance.now();
    expect(globMatcher(`${'*a'.repeat(40)}b`)('a'.repeat(4000))).toBe(false);
    expect(performance.now() - started).toBeLessThan(2000);
  });
});

describe('suggestions', () => {
  const columns = (names: Readonly<Record<string, number>>) => ({
    names: Object.keys(names),
    times_ns: Object.values(names),
    counts: Object.values(names).map(() => 2),
    all_count: Object.keys(names).length,
  });
  const names = {
    schema: 1,
    kernels: columns({ 'void gemm<float>(float*)': 90, gemm_small: 10, add: 5 }),
    operators: columns({ 'aten::mm': 50, 'aten::add': 20 }),
    wait_count: 0,
    batch_count: 0,
  };
  const labels = (typed: string) =>
    suggestionsFor(names, typed).map(({ target, label }) => `${target} ${label}`);

  it('are the names with the longest time before anything is typed', () => {
    expect(labels('').slice(0, 2)).toEqual(['kernels gemm<float>', 'operators aten::mm']);
  });

  it('begin with all names that contain the text', () => {
    const [all] = suggestionsFor(names, 'gemm');
    expect(all).toMatchObject({ pattern: '*gemm*', nameCount: 2, eventCount: 4, timeNs: 100 });
    expect(labels('gemm')).toEqual(['kernels *gemm*', 'kernels gemm_small', 'kernels gemm<float>']);
  });

  it('leave out a pattern of one name, unless it was typed', () => {
    expect(labels('mm').filter((label) => label.includes('*'))).toEqual(['kernels *mm*']);
    expect(labels('*::mm')).toEqual(['operators *::mm']);
  });

  it('are none where nothing matches', () => {
    expect(labels('zzz')).toEqual([]);
  });
});
