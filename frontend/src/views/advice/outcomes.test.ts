import { describe, expect, it } from 'vitest';
import { claim, mergedOutcome, outcome } from '../../../tests/samples';
import type { OverallStatus, RunReport } from '../../api/types.gen';
import fixture from './fixture.json';
import {
  byMissingData,
  countedUnder,
  emptyReason,
  groupedOutcomes,
  onlyElsewhere,
  otherTracesWith,
} from './outcomes';

const report = fixture as unknown as RunReport;
const here = 't1';

describe('the order of findings', () => {
  const counted_under = ['first', 'second'];
  const related = outcome({ rule: 'c', claim: { ...claim(0), high_ns: 2e6, counted_under } });
  const outcomes = [
    outcome({ rule: 'second', severity: 'info', claim: claim(9e7) }),
    related,
    outcome({ rule: 'first', severity: 'critical', claim: claim(2e6) }),
    outcome({ rule: 'symptom', severity: 'warning' }),
  ];

  it('is the server’s, with related symptoms last', () => {
    const groups = groupedOutcomes(outcomes, here);
    expect(groups.findings.map(({ rule }) => rule)).toEqual(['second', 'first', 'symptom']);
    expect(groups.related).toEqual([related]);
  });

  it('names the findings that count a related symptom', () => {
    expect(
      countedUnder(related, groupedOutcomes(outcomes, here).findings).map(({ rule }) => rule),
    ).toEqual(['second', 'first']);
    expect(countedUnder(outcome({ claim: claim(0) }), outcomes)).toEqual([]);
  });
});

describe('one trace', () => {
  const outcomes = [
    outcome({ rule: 'x' }),
    outcome({ rule: 'x', worker: 'worker1', span: '2', trace: 't2' }),
    // As an older report names them: by the same worker and span, yet another recording.
    outcome({ rule: 'y', trace: 't3', severity: 'critical' }),
    outcome({ rule: 'y', worker: 'worker1', trace: 't2', severity: 'info' }),
    outcome({ rule: 'p', status: 'passed' }),
  ];

  it('gets only its own outcomes', () => {
    const groups = groupedOutcomes(outcomes, here);
    expect(groups.findings.map(({ rule }) => rule)).toEqual(['x']);
    expect(groups.passed).toHaveLength(1);
  });

  it('shows which findings other traces share, and the worst of those found only there', () => {
    const merged = [
      mergedOutcome({ outcome: outcome({ rule: 'late', trace: '' }), traces: [] }),
      mergedOutcome({ outcome: outcome({ rule: 'x' }), traces: [here, 't2'] }),
      mergedOutcome({ outcome: outcome({ rule: 'y', trace: 't3' }), traces: ['t2', 't3'] }),
    ];
    expect(otherTracesWith(merged, 'x', here)).toEqual(['t2']);
    expect(otherTracesWith(merged, 'y', here)).toEqual([]);
    expect(onlyElsewhere(merged, here).map(({ rule, trace }) => [rule, trace])).toEqual([
      ['y', 't3'],
    ]);
  });
});

describe('checks that do not apply', () => {
  it('are grouped by reason', () => {
    const lacking = (rule: string, reason: string) =>
      outcome({ rule, status: 'not-applicable', reason, remedy: null });
    const groups = byMissingData([
      lacking('a', 'no loader'),
      lacking('b', 'no device'),
      lacking('c', 'no device'),
    ]);
    expect(
      groups.map((missing) => [missing.reason, missing.outcomes.map(({ rule }) => rule)]),
    ).toEqual([
      ['no device', ['b', 'c']],
      ['no loader', ['a']],
    ]);
  });
});

describe('an advice without findings', () => {
  const device = report.workers[0]?.devices ?? [];
  const standing = (state: OverallStatus['state']): OverallStatus => ({ state, message: 'So.' });

  it('is what the server says of the trace', () => {
    expect(emptyReason({ devices: device, standing: standing('healthy') })).toBe('healthy');
    expect(emptyReason({ devices: [], standing: standing('healthy') })).toBe('healthy');
    expect(emptyReason({ devices: device, standing: standing('cannot-tell') })).toBe(
      'inconclusive',
    );
    expect(emptyReason({ devices: device, standing: standing('not-applicable') })).toBe(
      'nothing-applicable',
    );
  });

  it('is "CPU only" where it is inconclusive without a device', () => {
    expect(emptyReason({ devices: [], standing: standing('cannot-tell') })).toBe('cpu-only');
    expect(emptyReason({ devices: [], standing: null })).toBe('cpu-only');
  });
});
