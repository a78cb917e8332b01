import { describe, expect, it } from 'vitest';
import { claim } from '../../tests/samples';
import { decisiveSaving, isCovered, otherSaving, shareWords, timeWords } from './claims';

const UNRECORDED = {
  unrecorded_low_ns: 3e6,
  unrecorded_high_ns: 9e6,
  unrecorded_share: 0.09,
  unrecorded_net_high_ns: 6e6,
};
const RECORDED = { ...claim(8e6), ...UNRECORDED };

describe('the decisive saving', () => {
  it('is that of the recorded step by default', () => {
    expect(decisiveSaving(RECORDED)).toEqual({
      lowNs: 6e6,
      highNs: 8e6,
      lowShare: 0.06,
      share: 0.08,
      netHighNs: 8e6,
      isUnrecorded: false,
    });
  });

  it('is that of the unrecorded step where it decides', () => {
    expect(decisiveSaving({ ...RECORDED, decisive_step: 'unrecorded' })).toEqual({
      lowNs: 3e6,
      highNs: 9e6,
      lowShare: 0.03,
      share: 0.09,
      netHighNs: 6e6,
      isUnrecorded: true,
    });
  });
});

describe('the words of a saving', () => {
  it.each([
    ['recorded', true, '6.0–8.0 % of the step', '6.00–8.00 ms per step'],
    ['unrecorded', true, '3.0–9.0 % of the unrecorded step', '3.00–9.00 ms per unrecorded step'],
    ['recorded', false, '6.0–8.0 % of the window', '6.00–8.00 ms in total'],
  ] as const)('name the %s step, with steps: %s', (decisive_step, hasSteps, share, time) => {
    const saving = decisiveSaving({ ...RECORDED, decisive_step });
    expect(shareWords(saving, hasSteps)).toBe(share);
    expect(timeWords(saving, hasSteps)).toBe(time);
  });
});

describe('the other saving', () => {
  it('is told where it differs', () => {
    const differing = { ...RECORDED, steps_differ: true };
    expect(otherSaving(RECORDED)).toBe('');
    expect(otherSaving(differing)).toBe('in a step without the profiler 3.00–9.00 ms');
    expect(otherSaving({ ...differing, decisive_step: 'unrecorded' })).toBe(
      'as recorded 6.00–8.00 ms',
    );
  });
});

describe('a covered claim', () => {
  it('saves nothing in either step', () => {
    expect(isCovered({ ...claim(0), high_ns: 5e6 })).toBe(true);
    expect(isCovered({ ...claim(0), high_ns: 5e6, unrecorded_net_high_ns: 1 })).toBe(false);
    expect(isCovered(claim(8e6))).toBe(false);
  });
});
