import { screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { describe, expect, it } from 'vitest';
import runs from '../../../tests/fixtures/runs.json';
import type { Rendered } from '../../../tests/render';
import { fakeApi, renderView, selectionOf } from '../../../tests/views';
import type { FlameFunctions, FlameGraph, Runs, Table } from '../../api/types.gen';
import { contrast } from '../../canvas/colours';
import { duration } from '../../core/format';
import { HOME } from '../../state/location';
import type { Patch } from '../../state/navigation';
import { cellOf, orderedRows } from '../../widgets/table/rows';
import { baseSpan, choicesOf } from './baseline';
import { changeFill } from './colours';
import memory from './fixture.json';
import functions from './fixtures/flame-functions.json';
import graph from './fixtures/flame-graph.json';
import { frameName, pythonLocation } from './labels';
import { exportOf, functionsTable, orderFrom, sortColumn } from './listing';
import Page from './page';

const ALL = runs as unknown as Runs;
const LIST = functions as unknown as FlameFunctions;

const THREADS = [
  { name: '1/1', label: 'Process 1, Main thread', total_ns: 9_000_000 },
  { name: '1/8', label: 'Process 1, Thread 8', total_ns: 2_000_000 },
];
const api = fakeApi({
  runs,
  'flame/graph': (parameters: URLSearchParams) =>
    parameters.get('subject') === 'memory'
      ? memory
      : { ...graph, threads: THREADS, waiting: 3_000_000 },
  'flame/functions': functions,
});

const shown = (start: Patch = {}): Rendered => renderView(Page, 'flame', start);

const table = (): Promise<HTMLElement> => screen.findByRole('grid', { name: 'Functions' });
const names = (of: HTMLElement): string[] =>
  within(of)
    .getAllByRole('row')
    .slice(1)
    .map((row) => within(row).getAllByRole('gridcell')[0]?.title ?? '');
const ordered = (list: FlameFunctions): Table & { readonly order: readonly number[] } => {
  const all = functionsTable(list);
  const sort = orderFrom(null, all);
  return { ...all, order: [...orderedRows(all, sortColumn(sort), sort.descending)] };
};

describe('the flame graph', () => {
  it('lists functions by self time', async () => {
    shown();
    const listed = names(await table());
    const expected = ordered(LIST).order.map((at) => LIST.names[at]);
    expect(listed).toEqual(expected.slice(0, listed.length));
    expect(screen.getByText(new RegExp(`^${duration(graph.whole)} of the host`))).toBeTruthy();
  });

  it('searches functions by name and shows their share of time', async () => {
    shown({ search: 'aten::mm' });
    const listed = names(await table());
    expect(listed.length).toBeGreaterThan(0);
    expect(listed.every((name) => name.includes('aten::mm'))).toBe(true);
    expect(screen.getByText(/frames? match/).textContent).toMatch(/[\d.]+ % of all/);
  });

  it('shows one selected function, and all again', async () => {
    const { store } = shown();
    const cell = within(await table()).getAllByRole('gridcell')[0] as HTMLElement;
    await userEvent.click(cell);
    expect(store.current().options.name).toBe(cell.title);
    await waitFor(() => expect(api.requests.some((path) => path.includes('name='))).toBe(true));
    await userEvent.click(screen.getByRole('button', { name: 'Show all functions' }));
    expect(store.current().options.name).toBeUndefined();
  });

  it('moves between frames by keys, announces each, and zooms into one', async () => {
    const { store } = shown();
    const picture = await screen.findByRole('application', { name: 'Flame graph' });
    picture.focus();
    await userEvent.keyboard('{ArrowDown}');
    const first = (graph as unknown as FlameGraph).names[graph.name[0] ?? 0] ?? '';
    expect(screen.getByText(/: .* of all, self/).textContent).toContain(first);
    await userEvent.keyboard('{ArrowDown}{Enter}');
    expect(store.current().options.root?.split('.')).toHaveLength(2);
    await userEvent.keyboard('{Escape}');
    expect(store.current().options.root?.split('.')).toHaveLength(1);
    await userEvent.keyboard('{Home}');
    expect(store.current().options.root).toBeUndefined();
  });

  it('zooms out by the breadcrumbs', async () => {
    const { store } = shown();
    const picture = await screen.findByRole('application', { name: 'Flame graph' });
    picture.focus();
    await userEvent.keyboard('{ArrowDown}{ArrowDown}{Enter}');
    const way = screen.getByRole('navigation', { name: 'Frames' });
    expect(within(way).getAllByRole('button')).toHaveLength(3);
    await userEvent.click(within(way).getByRole('button', { name: 'All' }));
    expect(store.current().options.root).toBeUndefined();
  });

  it('shows memory in bytes on request', async () => {
    const { store } = shown();
    await table();
    await userEvent.click(screen.getByRole('radio', { name: 'Memory' }));
    expect(store.current().options.of).toBe('memory');
    expect(await screen.findByText(/MiB on CPU at its peak/)).toBeTruthy();
  });

  it('shows one thread, listed with its time', async () => {
    const { store } = shown();
    await table();
    const picker = screen.getByRole('combobox', { name: 'Thread' });
    expect([...picker.querySelectorAll('option')].map((option) => option.textContent)).toEqual([
      'All threads',
      'Process 1, Main thread: 9.00 ms',
      'Process 1, Thread 8: 2.00 ms',
    ]);
    await userEvent.selectOptions(picker, '1/8');
    expect(store.current().options.thread).toBe('1/8');
    await waitFor(() =>
      expect(api.requests.some((path) => path.includes('thread=1%2F8'))).toBe(true),
    );
    const link = screen.getByRole('link', { name: 'speedscope' }).getAttribute('href') ?? '';
    expect(decodeURIComponent(link)).toContain('thread=1%2F8');
    await userEvent.click(screen.getByRole('radio', { name: 'Memory' }));
    expect(await screen.findByText(/MiB on CPU at its peak/)).toBeTruthy();
    expect(screen.queryByRole('combobox', { name: 'Thread' })).toBeNull();
  });

  it('hides the time of waits, and says how much', async () => {
    const { store } = shown();
    await table();
    expect(screen.queryByText(/of waiting hidden/)).toBeNull();
    await userEvent.click(screen.getByRole('checkbox', { name: 'Hide idle' }));
    expect(store.current().options.waits).toBe('hidden');
    expect(await screen.findByText(/; 3\.00 ms of waiting hidden$/)).toBeTruthy();
    await waitFor(() =>
      expect(api.requests.some((path) => path.includes('without_waits=true'))).toBe(true),
    );
    await userEvent.click(screen.getByRole('radio', { name: 'Device time' }));
    expect(screen.queryByRole('checkbox', { name: 'Hide idle' })).toBeNull();
    expect(screen.queryByText(/of waiting hidden/)).toBeNull();
  });

  it('opens in speedscope with a URL on this server', async () => {
    shown({ options: { measure: 'device' } });
    await table();
    const link = screen.getByRole('link', { name: 'speedscope' });
    const address = link.getAttribute('href') ?? '';
    expect(address).toMatch(/^speedscope\/index\.html#profileURL=/);
    const profile = new URL(decodeURIComponent(address.split('profileURL=')[1] ?? ''));
    expect(profile.origin).toBe(new URL(document.baseURI).origin);
    expect(profile.pathname).toMatch(/\/flame\/speedscope$/);
    expect(profile.searchParams.get('measure')).toBe('device');
  });
});

describe('functions of a comparison', () => {
  const both: FlameFunctions = {
    ...LIST,
    names: ['a', 'b', 'c'],
    name_kinds: [0, 0, 0],
    own: [10, 30, 0],
    total: [40, 30, 0],
    calls: [2, 2, 0],
    before_own: [60, 60, 90],
    before_total: [120, 60, 90],
    before_calls: [6, 6, 6],
    whole: 40,
    before_whole: 210,
    steps: 1,
    before_steps: 3,
    is_per_step: true,
  };

  it('are per step, the largest absolute change first', () => {
    const all = ordered(both);
    expect(all.order.map((at) => [both.names[at], cellOf(all, 'change', at)])).toEqual([
      ['c', -30],
      ['a', -10],
      ['b', 10],
    ]);
  });

  it('are exported with both sides', () => {
    const { columns, rows } = exportOf(both);
    expect(columns.map(({ label }) => label)).toEqual([
      'Function',
      'Kind',
      'Self per step',
      'Total per step',
      'Calls per step',
      'Self before per step',
      'Total before per step',
      'Calls before per step',
    ]);
    expect(rows[0]).toEqual(['a', 'user', 10, 40, 2, 20, 40, 2]);
    expect(rows[2]).toEqual(['c', 'user', 0, 0, 0, 30, 30, 2]);
  });

  it('have no call count if only stack samples mention them', () => {
    const { rows } = exportOf({ ...both, calls: [0, 2, 0] });
    expect(rows.map((row) => row[4])).toEqual([null, 2, 0]);
  });
});

describe('the baseline', () => {
  const selection = selectionOf();
  const { run, worker } = selection;

  it('is named by the URL; all workers are matched by name', () => {
    const location = { ...HOME, baseRun: run.id, baseWorker: '*', baseSpan: '*' };
    expect(baseSpan(ALL, location, worker.name)).toBe(worker.spans.at(-1));
    expect(baseSpan(ALL, { ...HOME, baseRun: 'none' }, worker.name)).toBeNull();
  });

  it('is none, the previous step, or another trace', () => {
    const step = { start_ns: 0, end_ns: 1, label: 'step 4' };
    const labels = choicesOf(ALL, selection, step).map(({ label }) => label);
    expect(labels.slice(0, 2)).toEqual(['None', 'Previous step (step 4)']);
    expect(labels).not.toContain(run.name);
    expect(labels.length).toBeGreaterThan(2);
  });
});

describe('labels of frames', () => {
  it('start with the distinguishing part', () => {
    expect(frameName('torch/nn/modules/linear.py(12): forward')).toBe(
      'forward · modules/linear.py:12',
    );
    expect(frameName('<built-in method mm of type object at 0x7f>')).toBe(
      'mm · type object at 0x7f',
    );
    expect(frameName('nn.Module: Linear_3')).toBe('Linear_3');
    expect(frameName('aten::mm')).toBe('aten::mm');
  });

  it('have the location of a Python function', () => {
    expect(pythonLocation('train.py(7): main')).toEqual({ path: 'train.py', line: 7, of: 'main' });
    expect(pythonLocation('aten::mm')).toBeNull();
  });

  it('are legible on every colour of a change', () => {
    for (const theme of ['light', 'dark'] as const) {
      for (let change = -1; change <= 1; change += 0.05) {
        const { fill, ink } = changeFill(change, theme);
        expect(contrast(fill, ink), `${theme} ${change}`).toBeGreaterThanOrEqual(4.5);
      }
    }
  });
});
