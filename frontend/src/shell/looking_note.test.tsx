import { screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { renderInPage } from '../../tests/render';
import { noRuns, runOf, spanOf } from '../../tests/states';
import type { Runs } from '../api/types.gen';
import { Content } from './content';
import { LookingNote } from './looking_note';

const looking: Runs = { ...noRuns, scanning: true, looked_at_count: 34_000 };
const withRun: Runs = { ...looking, runs: [runOf('job', 'ready', [spanOf()])] };

let posted: string[];
beforeEach(() => {
  posted = [];
  vi.stubGlobal('fetch', async (url: URL, options: RequestInit) => {
    posted.push(`${options.method} ${url.pathname.split('/api/')[1]}`);
    return new Response(JSON.stringify(noRuns));
  });
});
afterEach(() => vi.unstubAllGlobals());

it('a long look through a folder says how far it is, and can be stopped', async () => {
  renderInPage(<Content runs={looking} selected={{ kind: 'empty' }} view="advice" />);
  expect(screen.getByText('34,000 files scanned')).toBeTruthy();
  await userEvent.click(screen.getByRole('button', { name: 'Stop scanning for traces' }));
  expect(posted).toEqual(['POST listing/cancel']);
});

it('a look that was stopped can go on', async () => {
  const stopped = { ...looking, scanning: false, is_cancelled: true };
  renderInPage(<Content runs={stopped} selected={{ kind: 'empty' }} view="advice" />);
  await userEvent.click(screen.getByRole('button', { name: 'Continue the scan' }));
  expect(posted).toEqual(['POST listing/read']);
});

it('is told above the runs that are found already, and not when it is over', () => {
  renderInPage(<LookingNote runs={withRun} />);
  expect(screen.getByText('34,000 scanned')).toBeTruthy();
  expect(screen.getByText(/34,000 files scanned in log, 1 run found/)).toBeTruthy();
  const over = renderInPage(<LookingNote runs={{ ...withRun, scanning: false }} />);
  expect(over.container.innerHTML).toBe('');
});
