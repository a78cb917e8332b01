import { screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { describe, expect, it, vi } from 'vitest';
import type { Rendered } from '../../../tests/render';
import { fakeApi, renderView } from '../../../tests/views';
import type { Modules } from '../../api/types.gen';
import { duration } from '../../core/format';
import * as files from '../../host/download';
import type { Patch } from '../../state/navigation';
import { cellOf } from '../../widgets/table/rows';
import { cycledSort } from '../../widgets/table/sort_header';
import fixture from './fixture.json';
import work from './fixtures/modules-work.json';
import { costOf, keysOf, measuresOf } from './measures';
import Page from './page';
import { defaultDepth, treeOf } from './tree';

const table = fixture as unknown as Modules;
const names = table.values.module as string[];
const api = fakeApi({ modules: fixture, 'modules/work': work });

vi.setConfig({ testTimeout: 30_000 });

const shown = (start: Patch = {}): Rendered => renderView(Page, 'modules', start);

const grid = (): Promise<HTMLElement> =>
  screen.findByRole('treegrid', { name: 'Modules' }, { timeout: 20_000 });
const rowsIn = (of: HTMLElement): HTMLElement[] => within(of).getAllByRole('row').slice(1);
const namesIn = (of: HTMLElement): (string | null | undefined)[] =>
  rowsIn(of).map((row) => row.querySelector('td')?.textContent);

/** The line of code that the page offers. */
const lineThatRecords = (code: string): Promise<HTMLElement> =>
  screen.findByText((_, element) => element?.tagName === 'CODE' && element.textContent === code);

describe('the module tree', () => {
  it('lists modules below their callers, expanded to one screen', async () => {
    shown();
    const depth = defaultDepth(treeOf(table));
    const tree = treeOf(table);
    const open = names.filter((_, at) => (tree.depth[at] ?? 0) <= depth);
    expect(namesIn(await grid())).toEqual(open);
    const levels = rowsIn(await grid()).map((row) => Number(row.getAttribute('aria-level')));
    expect(Math.max(...levels)).toBe(depth + 1);
  });

  it('collapses a module, and keeps that in the URL', async () => {
    const { store } = shown();
    const before = namesIn(await grid()).length;
    await userEvent.click(within(await grid()).getByRole('button', { name: `Close ${names[0]}` }));
    expect(store.current().options.turned).toBe('0');
    expect(namesIn(await grid()).length).toBeLessThan(before);
  });

  it('is navigated, expanded and collapsed with the arrow keys', async () => {
    const { store } = shown();
    const [first] = rowsIn(await grid());
    first?.focus();
    await userEvent.keyboard('{ArrowLeft}');
    expect(store.current().options.turned).toBe('0');
    await userEvent.keyboard('{ArrowRight}');
    expect(store.current().options.turned).toBeUndefined();
    await userEvent.keyboard('{Enter}');
    expect(store.current().options.row).toBe('0');
  });

  it('sorts siblings', async () => {
    shown({ sort: { key: 'forward_host_total_ns', descending: true } });
    const shownNames = namesIn(await grid());
    const tree = treeOf(table);
    const children = (tree.children[0] ?? []).toSorted(
      (a, b) =>
        Number(cellOf(table, 'forward_host_total_ns', b)) -
        Number(cellOf(table, 'forward_host_total_ns', a)),
    );
    const order = children.map((at) => shownNames.indexOf(names[at]));
    expect(order).toEqual(order.toSorted((a, b) => a - b));
  });

  it('toggles between largest first, smallest first and call order', () => {
    const first = cycledSort(null, 'calls', true);
    const second = cycledSort(first, 'calls', true);
    expect([first, second, cycledSort(second, 'calls', true)]).toEqual([
      { key: 'calls', descending: true },
      { key: 'calls', descending: false },
      null,
    ]);
  });

  it('shows search results with their ancestors', async () => {
    shown({ search: 'GELU' });
    const shownNames = namesIn(await grid());
    const hits = names.filter((name) => name.includes('GELU'));
    for (const hit of hits) expect(shownNames).toContain(hit);
    expect(shownNames).toContain(names[0]);
    expect(shownNames.length).toBeLessThan(names.length);
  });

  it('shows an empty state for a search without results', async () => {
    const { store } = shown({ search: 'nothing-of-this-name' });
    await userEvent.click(await screen.findByRole('button', { name: 'Clear the search' }));
    expect(store.current().search).toBe('');
  });
});

describe('a module', () => {
  it('shows its work and links to its first call', async () => {
    const { store } = shown({ options: { row: '0' } });
    const details = await screen.findByRole('complementary', { name: 'Details' });
    await within(details).findByText('Operators');
    const [first] = work.operators.values.name;
    expect(within(details).getAllByRole('link', { name: first ?? '' })[0]).toBeTruthy();
    const [host] = work.operators.values.host_self_ns;
    expect(details.textContent).toContain(duration(host ?? 0));
    await userEvent.click(within(details).getByRole('link', { name: /In the timeline/ }));
    expect(store.current()).toMatchObject({ view: 'timeline', event: table.event[0] });
  });

  it('includes submodules, or only its self work', async () => {
    shown({ options: { row: '0' } });
    await screen.findByRole('complementary', { name: 'Details' });
    await userEvent.click(await screen.findByRole('radio', { name: 'Self' }));
    await waitFor(() =>
      expect(api.requests.some((path) => /work\?.*row=0.*within=false/.test(path))).toBe(true),
    );
  });
});

describe('the measure', () => {
  it('is one that the trace has data for', () => {
    const { kinds, passes } = measuresOf(table);
    expect(kinds.map(({ id }) => id)).toEqual(['host', 'memory']);
    expect(passes.map(({ id }) => id)).toEqual(['both', 'forward', 'backward']);
  });

  it('is the sum of both passes, or one of them', () => {
    const cost = (pass: 'both' | 'forward' | 'backward'): number =>
      costOf(table, keysOf(table, 'host', pass), 0);
    expect(cost('both')).toBe(cost('forward') + cost('backward'));
    expect(cost('forward')).toBe(cellOf(table, 'forward_host_total_ns', 0));
  });
});

describe('other parts', () => {
  it('export the visible rows with their paths', async () => {
    const saved = vi.spyOn(files, 'download').mockImplementation(() => undefined);
    shown();
    await grid();
    await userEvent.click(screen.getByRole('button', { name: 'CSV' }));
    const [, type, text = ''] = saved.mock.lastCall ?? [];
    expect(type).toBe('text/csv');
    const lines = text.trim().split('\r\n');
    expect(lines).toHaveLength(namesIn(await grid()).length + 1);
    expect(lines[2]).toContain(table.path[1] ?? 'no path');
  });

  it('show what to record without modules', async () => {
    api.responses.modules = {
      code: 'not-recorded',
      message: 'the recording holds neither calls of modules nor ranges',
      hint: 'profile(with_stack=True, with_modules=True)',
    };
    shown();
    expect(await lineThatRecords('profile(with_stack=True, with_modules=True)')).toBeTruthy();
  });

  it('show an empty state if no module ran in the time range', async () => {
    api.responses.modules = {
      ...fixture,
      row_count: 0,
      parent: [],
      path: [],
      empty: 'No module ran.',
    };
    shown();
    expect(await screen.findByText('No module ran.')).toBeTruthy();
  });

  it('request classes and the selected time range', async () => {
    shown({ time: { startNs: 5, endNs: 9 }, options: { by: 'class' } });
    await waitFor(() => expect(api.requests[0]).toContain('modules?by=class&start_ns=5&end_ns=9'));
  });
});

it('shows the source of modules that torch did not record', async () => {
  api.responses.modules = {
    ...fixture,
    origin: 'record_function',
    origin_meaning: 'Ranges named with record_function: no call of an nn.Module was recorded.',
  };
  shown();
  await grid();
  expect(screen.getByText('25 modules from record_function')).toBeTruthy();
  expect(screen.getByText('profile(with_stack=True, with_modules=True)')).toBeTruthy();
});
