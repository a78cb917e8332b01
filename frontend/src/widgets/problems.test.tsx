import { render, screen } from '@testing-library/react';
import { expect, it } from 'vitest';
import type { Problem } from '../api/types.gen';
import { alikeOf, Problems } from './problems';

const unreachable = (rank: number): Problem => ({
  path: `/mnt/job/rank${rank}.json`,
  message: 'no such file on node7',
  remedy: 'Mount /mnt/job there.',
});
const broken: Problem = { path: 'rank3.json', message: 'The file is empty.', remedy: '' };

it('what a thousand files have in common is said once, with the first of them', () => {
  const many = [broken, ...Array.from({ length: 1000 }, (_, rank) => unreachable(rank))];
  const { container } = render(<Problems problems={many} />);
  expect(screen.getByText(/1,001 files or folders could not be read/)).toBeTruthy();
  const items = screen.getAllByRole('listitem', { hidden: true });
  expect(items).toHaveLength(2);
  expect(items[0]?.textContent).toContain('and 992 more');
  expect(items[0]?.textContent).toContain('No such file on node7.');
  expect(container.querySelectorAll('code')).toHaveLength(9);
});

it('problems differ by what to do about them, too', () => {
  const other = { ...unreachable(2), remedy: 'Ask the administrator.' };
  expect(alikeOf([unreachable(1), other]).map(({ paths }) => paths)).toEqual([
    ['/mnt/job/rank1.json'],
    ['/mnt/job/rank2.json'],
  ]);
});
