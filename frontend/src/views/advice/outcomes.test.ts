import { describe, expect, it } from 'vitest';
import { claim, mergedOutcome, outcome } from '../../../tests/samples';
import type { HealthItem, RunReport } from '../../api/types.gen';
import fixture from './fixture.json';
import { alsoFound, byLack, emptiness, foundElsewhere, sorted, takersOf } from './outcomes';

const report = fixture as unknown as RunReport;
const here = 't1';

describe('the order of findings', () => {
  const method = 'Reckoned. 2.00 ms of it is counted under first, second.';
  const covered = outcome({ rule: 'c', claim: { ...claim(0), gross_ns: 2e6, method } });
  const outcomes = [
    outcome({ rule: 'second', severity: 'info', claim: claim(9e7) }),
    covered,
    outcome({ rule: 'first', severity: 'critical', claim: claim(2e6) }),
    outcome({ rule: 'symptom', severity: 'warning' }),
  ];

  it('is the server’s, and what others count already is apart', () => {
    const own = sorted(outcomes, here);
    expect(own.found.map((each) => each.rule)).toEqual(['second', 'first', 'symptom']);
    expect(own.covered).toEqual([covered]);
  });

  it('names the findings that count a covered one', () => {
    expect(takersOf(covered, sorted(outcomes, here).found).map((each) => each.rule)).toEqual([
      'second',
      'first',
    ]);
    expect(takersOf(outcome({ claim: claim(0) }), outcomes)).toEqual([]);
  });
});

describe('one recording', () => {
  const outcomes = [
    outcome({ rule: 'x' }),
    outcome({ rule: 'x', worker: 'worker1', span: '2', trace: 't2' }),
    // As an older report names them: by the same worker and span, yet another recording.
    outcome({ rule: 'y', trace: 't3', severity: 'critical' }),
    outcome({ rule: 'y', worker: 'worker1', trace: 't2', severity: 'info' }),
    outcome({ rule: 'p', status: 'passed' }),
  ];

  it('gets its own outcomes only', () => {
    const own = sorted(outcomes, here);
    expect(own.found.map((each) => each.rule)).toEqual(['x']);
    expect(own.passed).toHaveLength(1);
  });

  it('knows where else the same was found, and what only elsewhere, the worst of each', () => {
    const merged = [
      mergedOutcome({ outcome: outcome({ rule: 'late', trace: '' }), traces: [] }),
      mergedOutcome({ outcome: outcome({ rule: 'x' }), traces: [here, 't2'] }),
      mergedOutcome({ outcome: outcome({ rule: 'y', trace: 't3' }), traces: ['t2', 't3'] }),
    ];
    expect(alsoFound(merged, 'x', here)).toEqual(['t2']);
    expect(alsoFound(merged, 'y', here)).toEqual([]);
    expect(foundElsewhere(merged, here).map((each) => [each.rule, each.trace])).toEqual([
      ['y', 't3'],
    ]);
  });
});

describe('what is not applicable', () => {
  it('is told once for all checks that lack the same', () => {
    const lacking = (rule: string, reason: string) =>
      outcome({ rule, status: 'not-applicable', reason, remedy: null });
    const lacks = byLack([
      lacking('a', 'no loader'),
      lacking('b', 'no device'),
      lacking('c', 'no device'),
    ]);
    expect(lacks.map((lack) => [lack.reason, lack.outcomes.map((each) => each.rule)])).toEqual([
      ['no device', ['b', 'c']],
      ['no loader', ['a']],
    ]);
  });
});

describe('nothing found', () => {
  const damaged: HealthItem = {
    kind: 'truncated',
    severity: 'critical',
    count: 1,
    message: '',
    remedy: '',
    nature: 'damage',
    of_count: null,
    action: '',
    lost_bytes: 0,
    examples: [],
    effect: 'withheld',
    affects: [],
  };
  const said = (...statuses: ('passed' | 'cannot-tell' | 'not-applicable' | 'failed')[]) =>
    sorted(
      statuses.map((status, at) => outcome({ rule: `r${at}`, status })),
      here,
    );

  const device = (health: HealthItem[] = []) => ({
    devices: report.workers[0]?.devices ?? [],
    health,
  });

  it('is told as such of a CPU alone, unless the file is damaged', () => {
    const outcomes = said('passed', 'cannot-tell', 'cannot-tell');
    expect(emptiness(outcomes, { devices: [], health: [] })).toBe('cpu-alone');
    expect(emptiness(outcomes, { devices: [], health: [damaged] })).toBe('cannot-tell');
  });

  it('is healthy where most checks could be made', () => {
    expect(emptiness(said('passed', 'passed', 'cannot-tell'), device())).toBe('healthy');
    expect(emptiness(said('passed', 'not-applicable', 'not-applicable'), device())).toBe('healthy');
  });

  it('is no clean bill where most could not, one broke, or the file is damaged', () => {
    expect(emptiness(said('passed', 'cannot-tell', 'cannot-tell'), device())).toBe('cannot-tell');
    expect(emptiness(said('passed', 'passed', 'failed'), device())).toBe('cannot-tell');
    expect(emptiness(said('passed', 'passed'), device([damaged]))).toBe('cannot-tell');
  });

  it('is nothing to look at where no check applies', () => {
    expect(emptiness(said('not-applicable'), device())).toBe('nothing-applicable');
  });
});
