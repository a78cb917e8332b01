import { screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { describe, expect, it, vi } from 'vitest';
import { renderInPage } from '../../../tests/render';
import { firstOf, listed, runOf, runOfWorker, spanOf } from '../../../tests/states';
import { api } from '../../api/client';
import type { Change, ComparisonResult, Row, RunState, Runs } from '../../api/types.gen';
import * as files from '../../host/download';
import { HOME, type PageLocation } from '../../state/location';
import { queryOf } from '../../widgets/table/query';
import { cellOf, missesOf, orderedRows, rowName, shownRows } from '../../widgets/table/rows';
import cpuFixture from './fixture.json';
import gpuFixture from './fixtures/comparison.json';
import { ComparePage } from './page';
import { verdictText } from './phrases';
import { ComparisonReport, caveatsOf } from './report';
import { changeOf, identityOf, isOf, type Only, rowsTable, shapesOf } from './rows';
import { asAfter, asBefore, nameOf, type Side, sidesOf } from './sides';
import { sourceOf, waterfallOf } from './waterfall';

const gpu = gpuFixture as unknown as ComparisonResult;
const cpu = cpuFixture as unknown as ComparisonResult;

const file = (worker: string, minute: number): string =>
  `${worker}.17000000${String(minute).padStart(2, '0')}000000000.pt.trace.json`;

/** A run of one worker, recorded at some minute. */
const recorded = (name: string, minute: number, state: RunState['state'] = 'ready'): RunState =>
  runOfWorker(name, [spanOf({ trace: `t-${name}`, file: file('w', minute), state })]);

const baselineName = (
  runs: Runs,
  run: RunState,
  patch: Partial<PageLocation> = {},
): string | null => {
  const sides = sidesOf(runs, firstOf(run), { ...HOME, ...patch });
  return sides.before && nameOf(sides.before);
};

describe('the default baseline', () => {
  const fault = recorded('a/fault', 10);
  const fix = recorded('a/fix', 20);
  const other = recorded('b', 15);

  it('is the previous run in the folder, regardless of runs of other folders', () => {
    expect(baselineName(listed(fault, fix, other), fix)).toBe('a/fault');
  });

  it('is the other run of the folder if none is older', () => {
    expect(baselineName(listed(fault, fix, other), fault)).toBe('a/fix');
  });

  it('is the latest older run for a run without a folder', () => {
    expect(baselineName(listed(fault, fix, other), other)).toBe('a/fault');
    expect(
      baselineName(listed(other, recorded('c', 30), recorded('d', 40)), recorded('d', 40)),
    ).toBe('c');
  });

  it('is never an unreadable run, and is null without another run', () => {
    expect(baselineName(listed(recorded('a/x', 5, 'unreadable'), fix), fix)).toBeNull();
    expect(baselineName(listed(fix), fix)).toBeNull();
  });

  it('is the previous span if a span is selected and there is no other run', () => {
    const spans = ['1', '2', '3'].map((label) => spanOf({ trace: label, label }));
    const run = runOfWorker('solo', spans);
    const chosen = { worker: 'w', span: '2' };
    const sides = sidesOf(listed(run), firstOf(run, 1), { ...HOME, ...chosen });
    expect(sides.before && nameOf(sides.before)).toBe('solo, w, span 1');
    expect(sides.reason).toBe('another span of the same worker');
  });

  it('is the previous span or another worker for a single run', () => {
    const spans = ['1', '2', '3'].map((label) => spanOf({ trace: label, label }));
    const names = (run: RunState): (string | null)[] => {
      const sides = sidesOf(listed(run), firstOf(run), HOME);
      return [sides.before && nameOf(sides.before), nameOf(sides.after)];
    };
    const run = runOfWorker('solo', spans);
    expect(names(run)).toEqual(['solo, span 2', 'solo, span 3']);
    const ranks = runOf('ranks', 'ready', [spanOf(), spanOf({ trace: 't2' })]);
    expect(names(ranks)).toEqual(['ranks, rank0', 'ranks, rank1']);
  });

  it('is the one in the URL, or an error if it does not exist', () => {
    expect(baselineName(listed(fault, fix, other), fix, { baseRun: 'b' })).toBe('b');
    const gone = sidesOf(listed(fix), firstOf(fix), { ...HOME, baseRun: 'gone' });
    expect([gone.before, gone.unknown]).toEqual([null, 'gone']);
  });

  it('is restored from the URL', () => {
    const runs = listed(fault, fix, other);
    const sides: readonly Side[] = [
      { run: fault, worker: null, span: null },
      { run: fault, worker: 'w', span: null },
      { run: fault, worker: 'w', span: '1' },
    ];
    for (const side of sides) {
      const location = { ...HOME, ...asAfter(side, {}), ...asBefore(side) };
      const region = sidesOf(runs, firstOf(fault), location);
      expect([region.before, region.after]).toEqual([side, side]);
    }
  });

  it('is one trace of a run with many, unless the whole run is requested', () => {
    const many = runOf(
      'many',
      'ready',
      Array.from({ length: 40 }, (_, at) => spanOf({ trace: `${at}` })),
    );
    const side = (patch: Partial<PageLocation>): string | null =>
      sidesOf(listed(many, recorded('other', 1)), firstOf(many), { ...HOME, ...patch }).after
        .worker;
    expect(side({})).toBe('rank0');
    expect(side({ options: { workers: 'all' } })).toBeNull();
  });
});

describe('the waterfall', () => {
  it.each([gpu, cpu])('ends at the step time of the other side', ({ comparison }) => {
    const { levels, least } = waterfallOf(comparison);
    expect(levels[0]?.from).toBe(comparison.step.before);
    expect(levels.at(-1)?.to).toBe(comparison.step.after);
    for (const [at, level] of levels.entries()) {
      expect(level.to).toBeGreaterThanOrEqual(least);
      if (at > 0) expect(level.from).toBe(levels[at - 1]?.to);
    }
  });

  it('links to device work, or to operators without a device', () => {
    expect(sourceOf('kernel', true)).toEqual({ tab: 'device', kind: 'kernel' });
    expect(sourceOf('communication', false)?.tab).toBe('operators');
    expect(sourceOf('other', true)).toBeNull();
  });
});

const change = (patch: Partial<Change>): Change => ({
  before: 0,
  after: 0,
  unit: 'ns',
  standard_error: null,
  p: null,
  verdict: 'untested',
  ...patch,
});

const row = (name: string, patch: Partial<Row>): Row => ({
  kind: 'operator',
  name,
  status: 'same',
  matched_by: 'name',
  summed_count: 1,
  module: '',
  operator: '',
  shapes_before: [],
  shapes_after: [],
  calls: change({ unit: 'count', before: 1, after: 1 }),
  device: change({}),
  host: change({}),
  device_total: change({}),
  host_total: change({}),
  ...patch,
});

describe('the rows', () => {
  const rows = [
    row('a', { status: 'slower', host: change({ before: 5, after: 9, verdict: 'more' }) }),
    row('b', { status: 'added', host: change({ before: 0, after: 7 }) }),
    row('c', { host: change({ before: 100, after: 101, verdict: 'same' }) }),
    row('d', { status: 'gone', module: 'Linear_0', host: change({ before: 3, after: 0 }) }),
  ];
  const labels = gpu.status_labels;
  const names = (search: string, key = '', descending = true): string => {
    const table = rowsTable(rows, 'either', labels);
    const misses = missesOf(table, queryOf(table, search));
    return Array.from(shownRows(orderedRows(table, key, descending), misses), (at) =>
      cellOf(table, 'name', at),
    ).join('');
  };

  it('are filtered by change and text', () => {
    const of = (only: Only): string =>
      rows.flatMap((each) => (isOf(each, only) ? each.name : [])).join('');
    expect([of('changed'), of('gone')]).toEqual(['abd', 'd']);
    expect(names('linear')).toBe('d');
    expect(names('kind:kernel')).toBe('');
    expect(names('after:>=9ns')).toBe('ac');
  });

  it('name what they sum', () => {
    const sums = [
      row('aten::mul', { shapes_before: ['[2,2]'], summed_count: 48 }),
      row('', { kind: 'rest', summed_count: 812 }),
    ];
    const table = rowsTable(sums, 'either', labels);
    expect([0, 1].map((at) => cellOf(table, 'name', at))).toEqual([
      'aten::mul',
      '(the rest: 812 rows)',
    ]);
    expect(sums.map(shapesOf)).toEqual(['48 small rows summed', '']);
  });

  it('are sorted by a column, with missing values last', () => {
    expect(names('', 'delta', true)).toBe('bacd');
    expect(names('', 'delta', false)).toBe('dcab');
    expect(names('', 'relative', true)).toBe('acdb');
    expect(names('', 'relative', false)).toBe('dcab');
  });

  it('show device time, unless only host time changed significantly', () => {
    const device = change({ before: 10, after: 10, verdict: 'same' });
    const host = change({ before: 1, after: 4, verdict: 'more' });
    expect(changeOf(row('x', { device, host }), 'either')).toBe(host);
    expect(changeOf(row('x', { device, host: change({ before: 1 }) }), 'either')).toBe(device);
    expect(changeOf(row('x', { device, host }), 'device')).toBe(device);
    const total = change({ before: 8 });
    expect(changeOf(row('x', { host, host_total: total }), 'host-total')).toBe(total);
  });

  it('omit empty columns', () => {
    const keys = (of: readonly Row[]): string[] =>
      rowsTable(of, 'host', labels).columns.map(({ key }) => key);
    expect(keys([row('x', {})])).not.toContain('place');
    expect(keys(rows)).toContain('place');
  });
});

const fault = recorded('synthetic_dataloader/fault', 1);
const fix = recorded('synthetic_dataloader/fix', 2);
const sides = {
  before: { run: fault, worker: null, span: null },
  after: { run: fix, worker: null, span: null },
};

describe('a comparison of two runs', () => {
  it('shows the change of the step time and its main cause', () => {
    expect(verdictText(gpu.comparison)).toBe(
      'Step 51.4 ms → 28.5 ms, −44.5 %; mostly DataLoader −22.9 ms',
    );
  });

  it('states that a change is not significant', () => {
    const step = { ...gpu.comparison.step, verdict: 'same' as const };
    expect(verdictText({ ...gpu.comparison, step })).toMatch(/; not statistically significant$/);
    renderInPage(<ComparisonReport data={gpu} {...sides} />);
    const kernel = screen.getByRole('rowheader', { name: /^Kernel/ }).closest('tr');
    expect(kernel?.textContent).toContain('not significant');
    expect(kernel?.className).toContain('tone-noise');
  });

  it('shows the status of findings and their predicted saving', () => {
    renderInPage(<ComparisonReport data={gpu} {...sides} />);
    const advice = screen.getByRole('table', { name: 'Advice before and after' });
    expect(within(advice).getAllByText('fixed')).toHaveLength(gpu.comparison.advice.length);
    expect(within(advice).getByText('17.2–22.9 ms')).toBeTruthy();
    expect(screen.getByText(/The estimated saving of the fixed findings/).textContent).toContain(
      '22.9 ms',
    );
  });

  it('links from a category to its rows', async () => {
    const { store } = renderInPage(<ComparisonReport data={gpu} {...sides} />);
    Element.prototype.scrollIntoView = vi.fn();
    await userEvent.click(screen.getByRole('button', { name: /^Memcpy/ }));
    expect(store.current().options).toEqual({ tab: 'device', kind: 'copy', only: 'all' });
    const table = screen.getByRole('grid', { name: 'Device work before and after' });
    expect(within(table).getAllByRole('row').length).toBeGreaterThan(1);
    expect(within(table).queryByText(/gemm/)).toBeNull();
  });

  it('has a key for each row in the URL', () => {
    const { operators, device_work } = gpu.comparison;
    for (const rows of [operators, device_work, gpu.modules]) {
      const table = rowsTable(rows, 'either', gpu.status_labels);
      const keys = rows.map((_, at) => rowName(table, identityOf(rows), at));
      expect(new Set(keys).size).toBe(rows.length);
    }
  });

  it('opens the details of a row', async () => {
    const { store, unmount } = renderInPage(<ComparisonReport data={gpu} {...sides} />);
    const table = screen.getByRole('grid', { name: 'Operators before and after' });
    await userEvent.click(within(table).getByText(/SingleProcessDataLoaderIter/));
    const { options } = store.current();
    unmount();
    // The URL says which row it is: a link to it opens it again.
    renderInPage(<ComparisonReport data={gpu} {...sides} />, { options });
    const drawer = screen.getByRole('complementary', { name: 'Details' });
    expect(within(drawer).getByText('gone')).toBeTruthy();
    expect(within(drawer).getByRole('link', { name: 'Show before' })).toBeTruthy();
    expect(within(drawer).queryByRole('link', { name: 'Show after' })).toBeNull();
  });

  it('exports the visible rows with all columns in full precision', async () => {
    const saved = vi.spyOn(files, 'download').mockImplementation(() => undefined);
    renderInPage(<ComparisonReport data={gpu} {...sides} />, { options: { only: 'gone' } });
    await userEvent.click(screen.getByRole('button', { name: 'CSV' }));
    const [name, , text] = saved.mock.lastCall ?? [];
    expect(name).toBe('synthetic_dataloader-fault_synthetic_dataloader-fix_compare-operators.csv');
    const gone = gpu.comparison.operators.filter(({ status }) => status === 'gone');
    expect(text?.trim().split('\r\n')).toHaveLength(gone.length + 1);
    expect(text).toContain(String(gone[0]?.host.before));
  });

  it('links to the flame graph of both sides', async () => {
    const { store } = renderInPage(<ComparisonReport data={gpu} {...sides} />);
    await userEvent.click(screen.getByRole('link', { name: /Differential flame graph/ }));
    expect(store.current()).toMatchObject({
      view: 'flame',
      baseRun: fault.id,
      baseWorker: '*',
      options: { diff: 'base' },
    });
  });
});

it('shows caveats', () => {
  expect(caveatsOf(gpu)).toEqual(gpu.comparison.warnings);
  const doubtful = {
    ...gpu,
    is_same: true,
    has_other_devices: true,
    after: { ...gpu.after, waiting_count: 1, devices: 'Other GPU' },
    comparison: {
      ...gpu.comparison,
      warnings: ['The device was A and is B.', 'There are no steps after: …'],
    },
  };
  const caveats = caveatsOf(doubtful).join('\n');
  expect(caveats).toContain('nothing can have changed');
  expect(caveats).toContain('1 trace is still to be read');
  expect(caveats).toContain('Other GPU after');
  expect(caveats).toContain('There are no steps after');
  expect(caveats).not.toContain('The device was A');
});

it('lists settings that differ', () => {
  const shown = (settings: ComparisonResult['comparison']['settings']): HTMLElement | null => {
    const data = { ...cpu, comparison: { ...cpu.comparison, settings } };
    const { unmount } = renderInPage(<ComparisonReport data={data} {...sides} />);
    const region = screen.queryByRole('region', { name: 'Settings that differ' });
    if (region === null) unmount();
    return region;
  };
  expect(shown([])).toBeNull();
  const workers = { name: 'dataloaders[0].worker_count', label: 'DataLoader, Workers' };
  const card = shown([{ ...workers, before: '0', after: '4' }]);
  expect(card?.querySelector('dt')?.textContent).toBe('DataLoader, Workers');
  expect(card?.querySelector('dd')?.textContent).toBe('0 → 4');
});

describe('the page', () => {
  it('shows an empty state without a second trace', () => {
    renderInPage(<ComparePage selection={firstOf(fix)} runs={listed(fix)} />);
    expect(screen.getByText('Nothing to compare with yet')).toBeTruthy();
  });

  it('shows the progress of reading a side', () => {
    const reading = recorded('synthetic_dataloader/fault', 1, 'reading');
    renderInPage(<ComparePage selection={firstOf(fix)} runs={listed(reading, fix)} />);
    expect(
      screen.getByRole('heading', { name: /Reading synthetic_dataloader\/fault/ }),
    ).toBeTruthy();
  });

  it('requests both sides, and swaps them', async () => {
    const get = vi.spyOn(api, 'get').mockResolvedValue(gpu);
    const page = <ComparePage selection={firstOf(fix)} runs={listed(fault, fix)} />;
    const { store } = renderInPage(page);
    await waitFor(() => expect(screen.getByText('−44.5 %')).toBeTruthy());
    expect(get.mock.lastCall?.[1]).toMatchObject({ run: fix.id, base_run: fault.id });
    await userEvent.click(screen.getByRole('button', { name: 'Swap before and after' }));
    expect(store.current()).toMatchObject({ run: fault.id, baseRun: fix.id, baseWorker: '*' });
  });
});
