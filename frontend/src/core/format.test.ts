import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import texts from '../../../tests/formatted_numbers.json';
import * as format from './format';

const FORMATS = new Map(Object.entries(format));

type Formatter = (...values: number[]) => string;

describe.each(Object.entries(texts))('%s gives the text of the terminal', (name, ofName) => {
  const text = FORMATS.get(name) as Formatter;
  it.each(ofName as [number | number[], string][])('of %j', (value, expected) => {
    expect(text(...[value].flat())).toBe(expected);
  });
});

it.each([
  [0, '1 s'],
  [11_200_000_000, '12 s'],
  [59_400_000_000, '1 min'],
  [95_000_000_000, '2 min'],
  [3_541_000_000_000, '1 h 00 min'],
  [7_500_000_000_000, '2 h 05 min'],
])('a guess of %d ns reads %s', (ns, text) => {
  expect(format.roughly(ns)).toBe(text);
});

describe('durations', () => {
  it.each([
    [0, '0 ns'],
    [7, '7 ns'],
    [512, '512 ns'],
    [999, '999 ns'],
    [1_000, '1.00 µs'],
    [1_234, '1.23 µs'],
    [59_312_345, '59.3 ms'],
    [177_612_345, '178 ms'],
    [999_600_000, '1.00 s'],
    [125_000_000_000, '125 s'],
    [12_345_000_000_000, '12,345 s'],
    [-59_312_345, '-59.3 ms'],
  ])('%d ns reads %s', (ns, text) => {
    expect(format.duration(ns)).toBe(text);
  });

  it('never has an exponent, and always a unit', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }), (ns) => {
        expect(format.duration(ns)).toMatch(/^[\d,]+(\.\d+)? (ns|µs|ms|s)$/);
      }),
    );
  });

  it('is within half a percent of the value', () => {
    const factor = { ns: 1, µs: 1e3, ms: 1e6, s: 1e9 };
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1e15 }), (ns) => {
        const [number = '', unit = ''] = format.duration(ns).split(' ');
        const read = Number(number.replaceAll(',', '')) * factor[unit as keyof typeof factor];
        expect(Math.abs(read - ns) / ns).toBeLessThanOrEqual(0.00501);
      }),
    );
  });

  it('puts a range in one unit', () => {
    expect(format.durationRange(44_475_000, 59_300_000)).toBe('44.5–59.3 ms');
    expect(format.durationRange(900_000, 1_200_000)).toBe('0.900–1.20 ms');
    expect(format.durationRange(5_000_000, 5_000_000)).toBe('5.00 ms');
    expect(format.shareRange(0.0479, 0.202)).toBe('4.8–20.2 %');
    expect(format.shareRange(0, 0.5)).toBe('0–50.0 %');
    expect(format.shareRange(0.5, 0.5)).toBe('50.0 %');
  });

  it('names points in time to the microsecond, and ticks without idle zeros', () => {
    expect(format.instant(1_234_567_891)).toBe('1,234.568 ms');
    expect([0, 50_000_000, 1_500_000_000].map(format.tick)).toEqual(['0', '50 ms', '1.5 s']);
    expect([0, 500, 2 ** 26, -(2 ** 31)].map(format.tickBytes)).toEqual([
      '0',
      '500 B',
      '64 MiB',
      '-2 GiB',
    ]);
  });
});

describe('shares', () => {
  it.each([
    [0, '0.0 %'],
    [0.00001, '< 0.1 %'],
    [0.00523, '0.5 %'],
    [0.0789, '7.9 %'],
    [0.334, '33.4 %'],
    [0.9999, '> 99.9 %'],
    [1 - 1e-15, '100.0 %'],
    [1, '100.0 %'],
    [1.25, '125.0 %'],
  ])('%d reads %s', (share, text) => {
    expect(format.share(share)).toBe(text);
  });
});

describe('quantities', () => {
  it('reads each unit', () => {
    expect(format.quantity(34_084_028_416, 'bytes')).toBe('31.7 GiB');
    expect(format.quantity(5.3e9, 'bytes/s')).toBe('5.30 GB/s');
    expect(format.quantity(75_718, 'count')).toBe('75,718');
    expect(format.quantity(7.2, 'count')).toBe('7.20');
    expect(format.quantity('aten::add', 'code')).toBe('aten::add');
    expect(format.quantity(true, 'text')).toBe('yes');
  });

  it('tells what was not recorded from nothing', () => {
    expect(format.quantity(null, 'ns')).toBe('–');
    expect(format.quantityExact(null, 'ns')).toBe('not recorded');
    expect(format.quantity(0, 'ns')).toBe('0 ns');
    expect(format.quantity(Number.NaN, 'share')).toBe('–');
  });

  it('keeps every digit for the tooltip', () => {
    expect(format.quantityExact(177_612_345, 'ns')).toBe('177,612,345 ns');
    expect(format.quantityExact(0.334213, 'share')).toBe('33.4213 %');
  });
});

describe('changes', () => {
  it.each([
    [-55_000_000, 'ns', '−55.0 ms'],
    [2_500, 'ns', '+2.50 µs'],
    [0, 'ns', '0'],
    [0.0412, 'share', '+4.12 points'],
    [-0.00001, 'share', '< 0.01 points'],
    [-3, 'count', '−3'],
    [2 ** 20, 'bytes', '+1.00 MiB'],
  ] as const)('%d %s reads %s', (delta, unit, text) => {
    expect(format.change(delta, unit)).toBe(text);
  });

  it.each([
    [177.6, 121.3, '−31.7 %'],
    [100, 250, '+150.0 %'],
    [0, 5, ''],
    [5, 5, ''],
    [100_000, 100_001, '< 0.1 %'],
    [5, 0, '−100.0 %'],
  ])('from %d to %d reads %s', (before, after, text) => {
    expect(format.relativeChange(before, after)).toBe(text);
  });

  it('come with the chance that they are none', () => {
    expect(format.chance(0.0002)).toBe('p < 0.001');
    expect(format.chance(0.02164)).toBe('p = 0.022');
  });
});

it('tells when a file was recorded, or nothing', () => {
  expect(format.recordedTime('1767225600000000000')).toMatch(/^202[56]-(12|01)-\d\d \d\d:\d\d:00$/);
  expect(format.recordedTime('')).toBe('');
});

it('a text keeps a number and its unit on one line', () => {
  expect(format.unbroken('Step 178 ms (± 3.9 %, 6 steps); 5 sets')).toBe(
    'Step 178\u00a0ms (± 3.9\u00a0%, 6 steps); 5 sets',
  );
});
