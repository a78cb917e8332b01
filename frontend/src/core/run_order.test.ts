import { expect, it } from 'vitest';
import { resultOf, resultWith, runOf } from '../../tests/states';
import type { RunResult, RunState } from '../api/types.gen';
import { mostUrgent, urgencyOf } from './run_order';

const named = (name: string, result: RunResult | null): RunState => ({
  ...runOf(name, 'ready', []),
  result,
});

it('orders by severity, then by the likely saving', () => {
  const order = [
    null,
    resultOf(),
    resultWith('info', 0.9),
    resultWith('warning', 0.06),
    resultWith('warning', 0.19),
    resultWith('critical', 0.2),
    resultWith('critical', 1),
  ].map(urgencyOf);
  expect(order[0]).toBeNull();
  expect(order.slice(1)).toEqual(order.slice(1).toSorted((a, b) => Number(a) - Number(b)));
  expect(new Set(order).size).toBe(order.length);
});

it('puts a certain saving before one of the same size that may be nothing', () => {
  const { finding } = resultWith('critical', 0.5);
  const doubtful = resultOf({
    finding: finding && { ...finding, saving: { low_ns: 0, high_ns: 10_000_000, share: 0.5 } },
  });
  const without = resultOf({ finding: finding && { ...finding, saving: null } });
  expect(urgencyOf(doubtful)).toBe(3);
  expect(urgencyOf(without)).toBe(3);
  expect(urgencyOf(resultWith('critical', 0.5))).toBeGreaterThan(3);
});

it('selects the first of equals, and no run without results', () => {
  const runs = [
    named('unread', null),
    named('a', resultWith('warning', 0.1)),
    named('b', resultWith('critical', 0.3)),
    named('c', resultWith('critical', 0.3)),
  ];
  expect(mostUrgent(runs)?.name).toBe('b');
  expect(mostUrgent(runs.slice(0, 1))).toBeUndefined();
});
