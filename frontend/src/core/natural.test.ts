import { expect, it } from 'vitest';
import { noRuns, readingRun } from '../../tests/states';
import { inOrder } from './natural';

const named = (name: string, ...workers: [string, number | null][]) => ({
  ...readingRun,
  name,
  workers: workers.map(([worker, rank]) => ({ name: worker, rank, host: null, spans: [] })),
});

it('puts runs in the order of the numbers in their names', () => {
  const runs = ['run_10', 'Run_1', 'other/9', 'run_2', 'other/11'].map((name) => named(name));
  expect(inOrder({ ...noRuns, runs }).runs.map((run) => run.name)).toEqual([
    'other/9',
    'other/11',
    'Run_1',
    'run_2',
    'run_10',
  ]);
});

it('puts workers in the order of their ranks, else of their names', () => {
  const workersOf = (...workers: [string, number | null][]): (string | undefined)[] =>
    inOrder({ ...noRuns, runs: [named('run', ...workers)] }).runs.flatMap((run) =>
      run.workers.map((worker) => worker.name),
    );
  expect(workersOf(['node_b', 1], ['node_a', 10], ['node_c', 2])).toEqual([
    'node_b',
    'node_c',
    'node_a',
  ]);
  expect(workersOf(['rank10', null], ['rank9', null])).toEqual(['rank9', 'rank10']);
});
