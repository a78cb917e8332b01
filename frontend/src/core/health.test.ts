import { describe, expect, it } from 'vitest';
import { health, outcome } from '../../tests/samples';
import { affectedBy, against, cutOffAt, lostBytes, worthOf } from './health';

const cut = health({
  kind: 'truncated-json',
  severity: 'warning',
  lost_bytes: 300,
  examples: [{ offset_bytes: 4000, text: '{"ph"', start_ns: null }],
  effect: 'low',
  affects: ['item-sync', 'operators', 'comparison of ranks', 'something new'],
});

describe('what a recording is worth', () => {
  it.each([
    [[], 'good', 'This file is healthy'],
    [[health({ nature: 'note' })], 'good', 'This file is healthy'],
    [[health({ nature: 'gap' })], 'good', 'This file is healthy; more could have been recorded'],
    [[health()], 'info', 'This file is slightly damaged: all figures are reliable'],
    [
      [health({ nature: 'note', severity: 'warning', effect: 'low' })],
      'info',
      'This file is complete, but part of its data is unreliable',
    ],
    [
      [health(), health({ severity: 'warning', effect: 'low' })],
      'warning',
      'This trace is damaged: part of its data is unreliable',
    ],
    [
      [health({ severity: 'critical', effect: 'withheld' })],
      'critical',
      'This trace is damaged: part of its data is not used',
    ],
    [[health(), cut], 'warning', 'This file is cut off'],
  ] as const)('is said in one line %#', (items, tone, title) => {
    expect(worthOf(items)).toEqual({ tone, title });
  });

  it('tells where a file ends too early, and how much of it gave nothing', () => {
    expect(cutOffAt([health()])).toBeNull();
    expect(cutOffAt([cut, health({ kind: 'truncated-gzip' })])).toBe(4000);
    expect(lostBytes([cut, health({ lost_bytes: 41 }), health()])).toBe(341);
  });
});

describe('what rests on damage', () => {
  it('is a check of this recording, or a figure with the view that shows it', () => {
    const passed = outcome({ rule: 'item-sync', status: 'passed' });
    expect(affectedBy(cut, [passed, outcome({ rule: 'other' })])).toEqual({
      checks: [passed],
      figures: [
        { name: 'operators', view: 'operators' },
        { name: 'comparison of ranks', view: 'distributed' },
        { name: 'something new', view: null },
      ],
    });
  });

  it('is told by what speaks against it, what withholds it first', () => {
    const withheld = health({ effect: 'withheld', affects: ['operators'] });
    expect(against([cut, health(), withheld], ['operators'])).toEqual([withheld, cut]);
    expect(against([cut, withheld], ['kernels'])).toEqual([]);
  });
});
