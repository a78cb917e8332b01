import { expect, it } from 'vitest';
import type { RankSteps } from '../../../api/types.gen';
import { gridOf, linesOf } from './grid';
import { rolesOf } from './roles';

const groups = rolesOf([
  { role: 'DP', ranks: '1, 3' },
  { role: 'TP', ranks: '2-3' },
  { role: 'DP', ranks: '0, 2' },
  { role: 'TP', ranks: '0-1' },
  { role: '', ranks: '0-3' },
  { role: 'PP', ranks: '0-3' },
]);

it('ranks of one process group are adjacent, in the order of their first ranks', () => {
  expect(groups.roles).toEqual(['DP', 'TP']);
  const ranks = [0, 1, 2, 3, 4];
  const steps = {
    values: ranks.map(() => [1]),
    ranks,
    workers: ranks.map(String),
    hosts: ranks.map(() => null),
    steps: [0],
    scale: 1,
    is_high_bad: true,
  } as unknown as RankSteps;
  const rows = (role: string): number[] =>
    linesOf(steps, gridOf(steps), {
      order: 'group',
      missing: [],
      groupOf: groups.of(role),
    }).map((line) => (line.kind === 'rank' ? line.row : -1));
  expect(rows('DP')).toEqual([0, 2, 1, 3, 4]);
  expect(rows('TP')).toEqual([0, 1, 2, 3, 4]);
  expect(rows('no such role')).toEqual([0, 1, 2, 3, 4]);
});

it('a role with an unknown group does not partition the ranks', () => {
  const told = [
    { role: 'TP', ranks: '0-1' },
    { role: 'TP', ranks: '2-3' },
    { role: 'PP', ranks: '0, 2' },
    { role: 'PP', ranks: '1, 3' },
    { role: 'CP', ranks: '0' },
    { role: 'CP', ranks: '1' },
  ];
  expect(rolesOf(told, 4).roles).toEqual(['PP', 'TP']);
});
