import { describe, expect, it } from 'vitest';
import { claim } from '../../tests/samples';
import { decisiveSaving, isCovered, otherSaving } from './claims';

const UNRECORDED = {
  unrecorded_gross_ns: 9e6,
  unrecorded_low_ns: 2e6,
  unrecorded_high_ns: 6e6,
  unrecorded_share: 0.06,
};
const RECORDED = { ...claim(8e6), ...UNRECORDED };

describe('the decisive saving', () => {
  it('is that of the recorded step by default', () => {
    expect(decisiveSaving(RECORDED)).toEqual({
      grossNs: 8e6,
      lowNs: 6e6,
      highNs: 8e6,
      share: 0.08,
      isUnrecorded: false,
    });
  });

  it('is that of the unrecorded step where it decides', () => {
    expect(decisiveSaving({ ...RECORDED, decisive_step: 'unrecorded' })).toEqual({
      grossNs: 9e6,
      lowNs: 2e6,
      highNs: 6e6,
      share: 0.06,
      isUnrecorded: true,
    });
  });
});

describe('the other saving', () => {
  it('is told where it differs', () => {
    const differing = { ...RECORDED, steps_differ: true };
    expect(otherSaving(RECORDED)).toBe('');
    expect(otherSaving(differing)).toBe('in a step without the profiler up to 6.00 ms');
    expect(otherSaving({ ...differing, decisive_step: 'unrecorded' })).toBe(
      'as recorded up to 8.00 ms',
    );
  });
});

describe('a covered claim', () => {
  it('saves nothing in either step', () => {
    expect(isCovered({ ...claim(0), gross_ns: 5e6 })).toBe(true);
    expect(isCovered({ ...claim(0), gross_ns: 5e6, unrecorded_high_ns: 1 })).toBe(false);
    expect(isCovered(claim(8e6))).toBe(false);
  });
});
