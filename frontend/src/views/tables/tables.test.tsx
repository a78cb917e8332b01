import { screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { renderInPage } from '../../../tests/render';
import { api } from '../../api/client';
import type { Table, Tables } from '../../api/types.gen';
import type { Selection } from '../../state/selection';
import fixture from './fixture.json';
import cut from './fixtures/tables-kernel-events.json';
import steps from './fixtures/tables-steps.json';
import { tablesMatching } from './list';
import Page from './page';

const { tables } = fixture as unknown as Tables;
const selection = {
  run: { id: 'r1', name: 'run', workers: [] },
  worker: { name: 'worker0' },
  span: { trace: 't1', label: '1' },
} as unknown as Selection;

const requests: { path: string; parameters: object }[] = [];

beforeEach(() => {
  requests.length = 0;
  vi.spyOn(api, 'get').mockImplementation(async (path, parameters) => {
    requests.push({ path, parameters });
    if (path === 'tables') return fixture as never;
    return ('name' in parameters && parameters.name === 'steps' ? steps : cut) as never;
  });
});

const last = (): { path: string; parameters: object } | undefined => requests.at(-1);

describe('the tables', () => {
  it('are listed, with the table of steps shown first', async () => {
    renderInPage(<Page selection={selection} />);
    const grid = await screen.findByRole('grid');
    expect(grid.getAttribute('aria-rowcount')).toBe(String(steps.row_count + 1));
    const names = within(screen.getByRole('navigation')).getAllByRole('link');
    expect(names.map(({ textContent }) => textContent)[0]).toBe('Query');
    expect(names).toHaveLength(tables.length + 1);
    expect(last()?.parameters).toMatchObject({ trace: 't1', name: 'steps' });
  });

  it('are selected by links and kept in the URL', async () => {
    const { store } = renderInPage(<Page selection={selection} />);
    const name = await screen.findByTitle(/^kernel-events /);
    await userEvent.click(name);
    expect(store.current().options).toEqual({ table: 'kernel-events' });
    await waitFor(() => expect(last()?.parameters).toMatchObject({ name: 'kernel-events' }));
  });

  it('are sorted on the server if only the first rows were sent', async () => {
    const table = cut as unknown as Table;
    expect(table.all_row_count).toBeGreaterThan(table.row_count);
    renderInPage(<Page selection={selection} />, {
      options: { table: 'kernel-events' },
      sort: { key: 'start_ns', descending: false },
    });
    await screen.findByRole('grid');
    await waitFor(() =>
      expect(last()?.parameters).toMatchObject({ sort: 'start_ns', descending: false }),
    );
    await userEvent.click(screen.getByRole('button', { name: /^Load all/ }));
    await waitFor(() => expect(last()?.parameters).toMatchObject({ limit: 200_000 }));
  });

  it('are searched on the server if only the first rows were sent', async () => {
    const options = { table: 'kernel-events' };
    const { unmount } = renderInPage(<Page selection={selection} />, { options, search: 'gemm' });
    await waitFor(() =>
      expect(last()?.parameters).toMatchObject({ search: 'gemm', limit: 200_000 }),
    );
    unmount();
    renderInPage(<Page selection={selection} />, { options, search: 'duration:>1ms' });
    await waitFor(() => expect(last()?.parameters).toMatchObject({ limit: 200_000 }));
    expect(last()?.parameters).not.toHaveProperty('search');
  });

  it('of a run are requested from the run', async () => {
    renderInPage(<Page selection={selection} />, { options: { table: 'ranks' } });
    await waitFor(() => expect(last()?.path).toBe('runs/{run}/tables/ranks'));
  });
});

it('the search covers column names', () => {
  expect(tablesMatching(tables, 'registers_per_thread').map(({ name }) => name)).toContain(
    'kernel-events',
  );
  expect(tablesMatching(tables, '').length).toBe(tables.length);
});
