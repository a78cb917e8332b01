import { screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { Rendered } from '../../../tests/render';
import { fakeApi, renderView } from '../../../tests/views';
import type { MemoryGrowth, MemoryHolders, MemoryOverTime } from '../../api/types.gen';
import type { TimeSeriesProps } from '../../charts/time_series_types';
import { bytes, duration } from '../../core/format';
import type { Patch } from '../../state/navigation';
import { cellOf } from '../../widgets/table/rows';
import onDevice from './fixture.json';
import allocations from './fixtures/memory-allocations.json';
import curve from './fixtures/memory-curve.json';
import fragmentation from './fixtures/memory-fragmentation.json';
import growth from './fixtures/memory-growth.json';
import holders from './fixtures/memory-holders.json';
import operators from './fixtures/memory-operators.json';
import { verdictOf } from './growth';
import { shortHolder, tilesOf } from './holders';
import Page from './page';
import { spotsOf } from './scope';

// A canvas is drawn in the browser tests; here it is what it is asked to draw.
let drawn: TimeSeriesProps[] = [];
vi.mock('../../charts/time_series', () => ({
  default: (props: TimeSeriesProps) => {
    drawn.push(props);
    return <div data-testid="series">{props.label}</div>;
  },
}));

const HELD = holders as unknown as MemoryHolders;
const GROWTH = growth as unknown as MemoryGrowth;
const CURVE = curve as unknown as MemoryOverTime;
const refused = (message: string, hint: string): object => ({
  code: 'not-recorded',
  message,
  hint,
});

const api = fakeApi({
  'memory/curve': curve,
  'memory/holders': holders,
  'memory/allocations': allocations,
  'memory/operators': operators,
  'memory/growth': growth,
  'memory/fragmentation': fragmentation,
  'memory-files': { schema: 1, files: [] },
});
const isRequested = (pattern: RegExp): boolean => api.requests.some((path) => pattern.test(path));

vi.setConfig({ testTimeout: 30_000 });

beforeEach(() => {
  drawn = [];
});

const shown = (start: Patch = {}): Rendered => renderView(Page, 'memory', start);

/** The first of all waits for the view's own modules to load. */
const LOADING = { timeout: 20_000 };

const main = async (): Promise<TimeSeriesProps> => {
  await screen.findAllByTestId('series', {}, LOADING);
  const [first] = drawn;
  if (!first) throw new Error('a curve is drawn');
  return drawn.findLast(({ label }) => label.startsWith('Memory of')) ?? first;
};

/** The line of code that the page offers. */
const lineThatRecords = (code: string): Promise<HTMLElement> =>
  screen.findByText((_, element) => element?.tagName === 'CODE' && element.textContent === code);

describe('the curve', () => {
  it('draws all levels, the peak and the steps', async () => {
    shown();
    const chart = await main();
    expect(chart.xs).toEqual(CURVE.levels.time_ns);
    expect(chart.lines.map(({ values }) => values)).toEqual([CURVE.levels.allocated_bytes]);
    expect(chart.lines.every(({ holds }) => holds)).toBe(true);
    expect(chart.peaks).toMatchObject([{ x: CURVE.peak?.time_ns, y: CURVE.peak?.bytes }]);
    expect(chart.bands?.map(({ label }) => label)).toEqual(
      CURVE.steps.map(({ number }) => `step ${number}`),
    );
    expect(chart.label).toContain(bytes(CURVE.peak?.bytes ?? 0));
  });

  it('selects a time range on drag, and clears the step', async () => {
    const { store } = shown({ step: 4 });
    (await main()).onRange?.({ from: 1000.6, to: 5000.2 });
    expect(store.current()).toMatchObject({ time: { startNs: 1000, endNs: 5001 }, step: null });
    (await main()).onRange?.(null);
    expect(store.current().time).toBeNull();
  });

  it('marks the selected time range, and zooms into it on request', async () => {
    shown({ time: { startNs: 2_000_000, endNs: 9_000_000 } });
    expect((await main()).range).toEqual({ from: 2_000_000, to: 9_000_000 });
    await userEvent.click(await screen.findByRole('button', { name: 'Zoom in' }));
    await waitFor(() => expect(isRequested(/curve\?.*start_ns=2000000&end_ns=9000000/)).toBe(true));
  });

  it('shows memory use at the clicked moment', async () => {
    const { store } = shown();
    (await main()).onPick?.(4_200_000.4);
    expect(store.current().options.at).toBe('4200000');
    await waitFor(() => expect(isRequested(/moment_ns=4200000/)).toBe(true));
    expect(screen.getByRole('tab', { name: `At ${duration(4_200_000)}` })).toBeTruthy();
  });

  it('has lines for reserved memory and out-of-memory errors', async () => {
    const oom = {
      event: 7,
      time_ns: 3000,
      asked_bytes: 4e9,
      unused_bytes: 5e9,
      cause: 'fragmented',
      operator: 'aten::mm',
    };
    api.responses['memory/curve'] = { ...onDevice, ooms: [oom], oom_count: 1 };
    shown();
    const chart = await main();
    expect(chart.lines.map(({ label }) => label)).toEqual(['Allocated', 'Reserved']);
    expect(chart.marks).toMatchObject([{ x: 3000, label: 'no 3.73 GiB left' }]);
    const [why] = screen.getAllByText(/which requested/);
    expect(why?.textContent).toContain(
      'in aten::mm, which requested 3.73 GiB while 4.66 GiB were unused',
    );
  });

  it('shows one of several devices', async () => {
    const [first] = CURVE.devices;
    const devices = [{ ...first, id: 'CUDA 0' }, first];
    api.responses['memory/curve'] = { ...curve, device: 'CUDA 0', devices };
    const { store } = shown();
    await userEvent.click(await screen.findByRole('radio', { name: 'CPU' }));
    expect(store.current().options.device).toBe('CPU');
    await waitFor(() => expect(isRequested(/device=CPU/)).toBe(true));
  });
});

describe('memory by category', () => {
  it('is a treemap and a table of the same sizes', async () => {
    shown();
    const map = await screen.findByRole('group', { name: 'Memory by operator' });
    const tiles = within(map).getAllByRole('button');
    expect(tiles).toHaveLength(HELD.row_count);
    const [largest] = tiles;
    expect(largest?.textContent).toContain(bytes(Number(cellOf(HELD, 'held_bytes', 0))));
    expect(largest?.title).toContain(String(cellOf(HELD, 'name', 0)));
    await userEvent.click(tiles[1] as HTMLElement);
    const details = screen.getByRole('complementary', { name: 'Details' });
    expect(details.textContent).toContain(String(cellOf(HELD, 'name', 1)));
  });

  it('fills the treemap: the rest is one tile', () => {
    const sum = (table: MemoryHolders): number =>
      tilesOf(table, 'operator', 'light').reduce((all, { value }) => all + value, 0);
    const total = (HELD.values.held_bytes as number[]).reduce((all, value) => all + value, 0);
    expect(sum(HELD)).toBe(total);
    const cut = { ...HELD, left_out_count: 3, left_out_bytes: 1000 };
    expect(sum(cut)).toBe(total + 1000);
    expect(tilesOf(cut, 'operator', 'light').at(-1)).toMatchObject({ label: '3 others' });
  });

  it('omits negative values due to missing events', () => {
    const held_bytes = [5, -2];
    const values = { ...HELD.values, held_bytes };
    expect(tilesOf({ ...HELD, row_count: 2, values }, 'operator', 'dark')).toHaveLength(1);
  });

  it('names a stack by its innermost function', () => {
    expect(shortHolder('train.py(9): main;src/net.py(12): forward', 'stack')).toBe(
      'forward net.py:12',
    );
    expect(shortHolder('aten::mm', 'operator')).toBe('aten::mm');
  });

  it('shows what to record if it is unknown, and offers other groupings', async () => {
    api.responses['memory/holders'] = refused(
      'no Python calls were recorded',
      'profile(with_stack=True)',
    );
    const { store } = shown({ options: { by: 'stack' } });
    expect(await lineThatRecords('profile(with_stack=True)')).toBeTruthy();
    await userEvent.click(screen.getByRole('radio', { name: 'Lifetime' }));
    expect(store.current().options.by).toBe('lifetime');
  });
});

describe('allocations', () => {
  const rows = async (): Promise<HTMLElement[]> => {
    const grid = await screen.findByRole('grid', { name: 'Allocations' });
    return within(grid).getAllByRole('row').slice(1);
  };

  it('mark their start and end on the curve on hover', async () => {
    shown({ options: { tab: 'allocations' } });
    const [first] = await rows();
    await userEvent.hover(first as HTMLElement);
    const spots = spotsOf(allocations as never, 0);
    expect(spots.length).toBeGreaterThan(0);
    await waitFor(() =>
      expect(drawn.findLast(({ label }) => label.startsWith('Memory of'))?.spots).toEqual(spots),
    );
  });

  it('are selected as events, and show their stack', async () => {
    const { store } = shown({ options: { tab: 'allocations' } });
    const [first] = await rows();
    await userEvent.click(first as HTMLElement);
    await waitFor(() => expect(store.current().event).toBe(allocations.owner_event[0]));
    const details = screen.getByRole('complementary', { name: 'Details' });
    expect(within(details).getByRole('link', { name: /In the timeline/ })).toBeTruthy();
  });

  it('are selected by the selected event of other views', async () => {
    const { store } = shown({
      options: { tab: 'allocations' },
      event: allocations.owner_event[2] ?? 0,
    });
    await rows();
    await waitFor(() => expect(store.current().options.row).toBeTruthy());
    expect(await screen.findByRole('complementary', { name: 'Details' })).toBeTruthy();
  });

  it('are requested by size, state, time and text', async () => {
    shown({
      search: 'aten::mm',
      time: { startNs: 10, endNs: 20 },
      options: { tab: 'allocations', min: '64k', max: '1 MiB', state: 'held', which: 'born' },
    });
    await screen.findAllByTestId('series', {}, LOADING);
    await waitFor(() => expect(isRequested(/memory\/allocations/)).toBe(true));
    const path = api.requests.find((other) => other.includes('memory/allocations')) ?? '';
    expect(Object.fromEntries(new URLSearchParams(path.split('?')[1]))).toMatchObject({
      min_bytes: '64000',
      max_bytes: String(2 ** 20),
      state: 'held',
      which: 'born',
      start_ns: '10',
      end_ns: '20',
      search: 'aten::mm',
    });
  });

  it('count those not listed', async () => {
    shown({ options: { tab: 'allocations' } });
    await rows();
    const { found_count, row_count } = allocations;
    expect(found_count).toBeGreaterThan(row_count);
    expect(screen.getByText(/are listed/).textContent).toContain(
      `the first ${row_count} are listed, the other ${(found_count - row_count).toLocaleString('en-US')} have`,
    );
  });
});

describe('growth', () => {
  const grown = (patch: Partial<MemoryGrowth>): string => verdictOf({ ...GROWTH, ...patch });

  it('is shown with its confidence and the time until the device is full', () => {
    const patch = {
      step_count: 8,
      growth_bytes: 2e6,
      least_growth_bytes: 1e6,
      most_growth_bytes: 3e6,
      total_growth_bytes: 14e6,
      confidence: 'high',
      full_after_step_count: 41.7,
    };
    expect(grown(patch)).toBe(
      'Memory grows by 1.91 MiB per step (95 %: 977 KiB to 2.86 MiB), with high confidence. At that rate the device is full after 42 more steps.',
    );
  });

  it('is shown as absent or as unknown', () => {
    expect(
      grown({ step_count: 6, growth_bytes: 0, total_growth_bytes: 0, confidence: 'none' }),
    ).toBe('Over 6 steps memory does not grow: the last step ends with as much as the first.');
    expect(grown({ step_count: 1, growth_bytes: null })).toBe(
      'Growth is inconclusive: not enough complete steps (needs 2, has 1).',
    );
  });

  it('shows all steps in the table', async () => {
    shown({ options: { tab: 'growth' } });
    const summary = await screen.findByText('As a table');
    const table = within(summary.closest('details') as HTMLElement).getByRole('table');
    expect(within(table).getAllByRole('row')).toHaveLength(GROWTH.steps.row_count + 1);
  });
});

describe('other parts', () => {
  it('show fragmentation as text and over time', async () => {
    shown({ options: { tab: 'fragmentation' } });
    const fact = (await screen.findByText('Peak reserved')).parentElement;
    expect(fact?.textContent).toContain(bytes(fragmentation.most_reserved_bytes));
    const chart = await waitFor(() => {
      const chart_ = drawn.findLast(({ label }) => label.startsWith('Reserved and unused'));
      expect(chart_).toBeDefined(); // the chart is a chunk of its own
      return chart_;
    });
    expect(drawn.some(({ xs }) => xs === undefined)).toBe(false);
    expect(chart?.lines[0]?.values).toEqual(fragmentation.over_time_bytes);
  });

  it('reset search and order when the tab changes', async () => {
    const { store } = shown({
      search: 'mm',
      sort: { key: 'bytes', descending: false },
      options: { tab: 'allocations' },
    });
    await userEvent.click(await screen.findByRole('tab', { name: 'By operator' }));
    await waitFor(() => expect(store.current()).toMatchObject({ search: '', sort: null }));
  });

  it('keep the search of a link to another tab', async () => {
    const { store } = shown();
    const map = await screen.findByRole('group', { name: 'Memory by operator' });
    const recorded = (HELD.values.origin as string[]).indexOf('recorded');
    await userEvent.click(within(map).getAllByRole('button')[recorded] as HTMLElement);
    await userEvent.click(screen.getByRole('link', { name: /Its allocations/ }));
    await screen.findByRole('grid', { name: 'Allocations' });
    const { options, search } = store.current();
    expect(options.tab).toBe('allocations');
    expect(search).toBe(`"${cellOf(HELD, 'name', recorded)}"`);
  });

  it('show what to record without memory data, and memory files of the run', async () => {
    api.responses['memory/curve'] = refused(
      'no memory was recorded',
      'profile(profile_memory=True)',
    );
    api.responses['memory-files'] = {
      schema: 1,
      files: [
        {
          id: 'f1',
          name: 'snapshot.pickle',
          what: 'snapshot',
          file_bytes: 9e9,
          problem: 'Too large.',
        },
      ],
    };
    shown();
    expect(await lineThatRecords('profile(profile_memory=True)')).toBeTruthy();
    expect(await screen.findByText('Too large.')).toBeTruthy();
  });

  it('show a tab for memory files if there are any', async () => {
    api.responses['memory-files'] = {
      schema: 1,
      files: [{ id: 'f1', name: 'memory.json.gz', what: 'timeline', file_bytes: 9, problem: '' }],
    };
    api.responses['memory-files/f1'] = {
      schema: 1,
      id: 'f1',
      name: 'memory.json.gz',
      what: 'timeline',
      summary: ['At most 9 B were held.'],
      curves: [
        {
          title: 'What memory is for, over time',
          is_stacked: true,
          is_in_time: true,
          at: [0, 5],
          lines: [{ id: 'gradient', label: 'Gradient', help: 'Of parameters.', bytes: [0, 9] }],
        },
      ],
      tables: [],
    };
    shown();
    await userEvent.click(await screen.findByRole('tab', { name: /Snapshots and timelines/ }));
    expect(await screen.findByText('At most 9 B were held.')).toBeTruthy();
    const chart = drawn.findLast(({ label }) => label.startsWith('What memory is for'));
    expect(chart?.lines).toMatchObject([{ id: 'gradient', stack: 'all', values: [0, 9] }]);
  });
});
