import { screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { expect, it } from 'vitest';
import { renderInPage } from '../../tests/render';
import { listed, runOf, spanOf, unreadableRun } from '../../tests/states';
import type { Problem, RunState } from '../api/types.gen';
import { FileProblems, problemsOf } from './file_problems';

const intact = runOf('intact', 'ready', [spanOf()]);
const unreachable: Problem = { path: '/mnt', message: 'no such folder', remedy: '' };
const runs = { ...listed(unreadableRun, intact), problems: [unreachable] };

const messages = (run: RunState | null): string[] =>
  problemsOf(runs, run).map(({ problem }) => problem.message);

it('tells the problems of the folder and of the shown run only', () => {
  expect(messages(intact)).toEqual(['no such folder']);
  expect(messages(unreadableRun)).toEqual(['no such folder', 'The file is empty.']);
  expect(messages(null)).toEqual(['no such folder', 'The file is empty.']);
});

it('tells a problem of several sources once', () => {
  const twice = { ...listed(intact), problems: [unreachable, unreachable] };
  expect(problemsOf(twice, null)).toHaveLength(1);
});

it('stays closed for this file, not for another problem', async () => {
  const both = listed(unreadableRun, intact);
  const { unmount } = renderInPage(<FileProblems runs={both} run={unreadableRun} />);
  expect((await screen.findAllByText(/The file is empty/)).length).toBeGreaterThan(0);
  await userEvent.click(screen.getByRole('button', { name: 'Close the notice' }));
  expect(screen.queryByText(/The file is empty/)).toBeNull();
  unmount();
  renderInPage(<FileProblems runs={both} run={unreadableRun} />);
  expect(screen.queryByText(/The file is empty/)).toBeNull();
  const other = { ...both, problems: [unreachable] };
  renderInPage(<FileProblems runs={other} run={unreadableRun} />);
  expect((await screen.findAllByText(/no such folder/i)).length).toBeGreaterThan(0);
});
