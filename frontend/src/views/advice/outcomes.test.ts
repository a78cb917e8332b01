import { describe, expect, it } from 'vitest';
import { claim, outcome } from '../../../tests/samples';
import { alsoFound, byLack, emptiness, foundElsewhere, sorted } from './outcomes';

const here = { worker: 'worker0', span: '1' };

describe('the order of findings', () => {
  it('is severity, then what is left to save, then claims before none', () => {
    const outcomes = [
      outcome({ rule: 'c', severity: 'info', claim: claim(9e7) }),
      outcome({ rule: 'b', severity: 'warning', claim: claim(1e6) }),
      outcome({ rule: 'symptom', severity: 'warning' }),
      outcome({ rule: 'a', severity: 'warning', claim: claim(5e6) }),
      outcome({ rule: 'first', severity: 'critical', claim: claim(2e6) }),
    ];
    const rules = sorted(outcomes, here).found.map((each) => each.rule);
    expect(rules).toEqual(['first', 'a', 'b', 'symptom', 'c']);
  });
});

describe('one recording', () => {
  const outcomes = [
    outcome({ rule: 'x' }),
    outcome({ rule: 'x', worker: 'worker1', span: '2' }),
    outcome({ rule: 'y', worker: 'worker1', severity: 'info' }),
    outcome({ rule: 'y', worker: 'worker2', severity: 'critical' }),
    outcome({ rule: 'p', status: 'passed' }),
  ];

  it('gets its own outcomes only', () => {
    const own = sorted(outcomes, here);
    expect(own.found.map((each) => each.rule)).toEqual(['x']);
    expect(own.passed).toHaveLength(1);
  });

  it('knows where else the same was found, and what only elsewhere, the worst of each', () => {
    expect(alsoFound(outcomes, 'x', here).map((each) => each.worker)).toEqual(['worker1']);
    expect(foundElsewhere(outcomes, here).map((each) => [each.rule, each.worker])).toEqual([
      ['y', 'worker2'],
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
  const said = (...statuses: ('passed' | 'not-applicable' | 'failed')[]) =>
    sorted(
      statuses.map((status, at) => outcome({ rule: `r${at}`, status })),
      here,
    );

  it('is healthy where most checks could be made', () => {
    expect(emptiness(said('passed', 'passed', 'not-applicable'), [])).toBe('healthy');
  });

  it('is no clean bill where most could not, one broke, or the file is damaged', () => {
    expect(emptiness(said('passed', 'not-applicable', 'not-applicable'), [])).toBe('cannot-tell');
    expect(emptiness(said('passed', 'passed', 'failed'), [])).toBe('cannot-tell');
    const damage = [
      { kind: 'truncated', severity: 'critical' as const, count: 1, message: '', remedy: '' },
    ];
    expect(emptiness(said('passed', 'passed'), damage)).toBe('cannot-tell');
  });

  it('is nothing to look at where no check applies', () => {
    expect(emptiness(said('not-applicable'), [])).toBe('nothing-applicable');
  });
});
