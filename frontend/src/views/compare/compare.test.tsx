import { screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { describe, expect, it, vi } from 'vitest';
import { renderInPage } from '../../../tests/render';
import { firstOf, listed, runOf, runOfWorker, spanOf } from '../../../tests/states';
import { api } from '../../api/client';
import type {
  Candidate,
  Change,
  Comparability,
  ComparisonResult,
  Row,
  RunState,
  Runs,
} from '../../api/types.gen';
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
import {
  asAfter,
  asBefore,
  choicesInRun,
  defaultSides,
  earlierInFolder,
  namedSides,
  nameOf,
  type Side,
  type Sides,
} from './sides';
import { sourceOf, waterfallOf } from './waterfall';

const gpu = gpuFixture as unknown as ComparisonResult;
const cpu = cpuFixture as unknown as ComparisonResult;

const file = (worker: string, minute: number): string =>
  `${worker}.17000000${String(minute).padStart(2, '0')}000000000.pt.trace.json`;

/** A run of one worker, recorded at some minute. */
const recorded = (name: string, minute: number, state: RunState['state'] = 'ready'): RunState =>
  runOfWorker(name, [spanOf({ trace: `t-${name}`, file: file('w', minute), state })]);

const candidate = (run: RunState, patch: Partial<Candidate> = {}): Candidate => ({
  run: run.id,
  level: 'comparable',
  likeness: 0.96,
  is_same_model: true,
  reason: 'same device, models 96.0 % alike',
  ...patch,
});

const sidesAt = (
  runs: Runs,
  run: RunState,
  candidates: readonly Candidate[],
  patch: Partial<PageLocation> = {},
): Sides => defaultSides(runs, firstOf(run), { ...HOME, ...patch }, candidates);

const baselineName = (...of: Parameters<typeof sidesAt>): string | null => {
  const { before } = sidesAt(...of);
  return before && nameOf(before);
};

describe('the default baseline', () => {
  const fault = recorded('a/fault', 10);
  const fix = recorded('a/fix', 20);
  const later = recorded('a/later', 30);
  const other = recorded('b', 15);
  const runs = listed(fault, fix, later, other);
  const all = [fault, fix, later, other].map((run) => candidate(run));

  it('is the latest earlier run of the same model in the folder', () => {
    expect(baselineName(runs, later, all)).toBe('a/fix');
    expect(baselineName(runs, fix, all)).toBe('a/fault');
    const stranger = candidate(fix, { likeness: 0.2, is_same_model: false });
    expect(baselineName(runs, later, [candidate(fault), stranger])).toBe('a/fault');
  });

  it('is no later run, no run of another folder or model, and none that is not read', () => {
    expect(baselineName(runs, fault, all)).toBeNull();
    expect(baselineName(runs, other, all)).toBeNull();
    expect(baselineName(runs, fix, [candidate(fault, { is_same_model: false })])).toBeNull();
    expect(baselineName(runs, fix, [])).toBeNull();
  });

  it('is no run of an unknown time', () => {
    const undated = runOfWorker('a/undated', [spanOf({ trace: 'x', file: 'w.1.pt.trace.json' })]);
    const both = [candidate(undated), candidate(fix)];
    expect(baselineName(listed(undated, fix), fix, both)).toBeNull();
    expect(baselineName(listed(undated, fix), undated, both)).toBeNull();
  });

  it('is never an unreadable run', () => {
    const broken = recorded('a/x', 5, 'unreadable');
    expect(earlierInFolder(listed(broken, fix), fix)).toEqual([]);
    expect(baselineName(listed(broken, fix), fix, [candidate(broken)])).toBeNull();
  });

  const spans = ['1', '2', '3'].map((label) => spanOf({ trace: label, label }));

  it('is the span before without such a run, never the span after', () => {
    const run = runOfWorker('solo', spans);
    const names = (at: number, patch: Partial<PageLocation>): (string | null)[] => {
      const { before, after } = defaultSides(
        listed(run),
        firstOf(run, at),
        { ...HOME, ...patch },
        [],
      );
      return [before && nameOf(before), nameOf(after)];
    };
    expect(names(0, {})).toEqual(['solo, span 2', 'solo, span 3']);
    expect(names(1, { worker: 'w', span: '2' })).toEqual(['solo, w, span 1', 'solo, w, span 2']);
    expect(names(0, { worker: 'w', span: '1' })[0]).toBeNull();
  });

  it('is never another worker, which may be selected', () => {
    const ranks = runOf('ranks', 'ready', [spanOf(), spanOf({ trace: 't2' })]);
    const sides = sidesAt(listed(ranks), ranks, []);
    expect(sides.before).toBeNull();
    const [choice] = choicesInRun(sides.after);
    expect(choice && [nameOf(choice.before), nameOf(choice.after)]).toEqual([
      'ranks, rank0',
      'ranks, rank1',
    ]);
    expect(choicesInRun({ run: fix, worker: null, span: null })).toEqual([]);
    const first: Side = { run: runOfWorker('solo', spans), worker: 'w', span: '1' };
    expect(choicesInRun(first).map(({ before }) => nameOf(before))).toEqual(['solo, w, span 2']);
  });

  it('yields to the one in the URL, which may not exist', () => {
    const named = (baseRun: string): ReturnType<typeof namedSides> =>
      namedSides(runs, firstOf(fix), { ...HOME, baseRun });
    expect(named('b')).toMatchObject({ before: { run: other } });
    expect(named('gone')).toBe('unknown');
    expect(namedSides(runs, firstOf(fix), HOME)).toBeNull();
  });

  it('is restored from the URL', () => {
    const sides: readonly Side[] = [
      { run: fault, worker: null, span: null },
      { run: fault, worker: 'w', span: null },
      { run: fault, worker: 'w', span: '1' },
    ];
    for (const side of sides) {
      const location = { ...HOME, ...asAfter(side, {}), ...asBefore(side) };
      expect(namedSides(runs, firstOf(fault), location)).toMatchObject({
        before: side,
        after: side,
      });
    }
  });

  it('is one trace of a run with many, unless the whole run is requested', () => {
    const many = runOf(
      'many',
      'ready',
      Array.from({ length: 40 }, (_, at) => spanOf({ trace: `${at}` })),
    );
    const side = (patch: Partial<PageLocation>): string | null =>
      sidesAt(listed(many, recorded('other', 1)), many, [], patch).after.worker;
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
    expect(within(advice).getByText('22.3–23.0 ms')).toBeTruthy();
    expect(screen.getByText(/The followed advice .* was estimated/).textContent).toContain(
      '23.0 ms',
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
    after: { ...gpu.after, waiting_count: 1 },
    comparison: { ...gpu.comparison, warnings: ['There are no steps after: …'] },
  };
  const caveats = caveatsOf(doubtful).join('\n');
  expect(caveats).toContain('nothing can have changed');
  expect(caveats).toContain('1 trace is still to be read');
  expect(caveats).toContain('There are no steps after');
});

describe('sides that are not comparable', () => {
  const withLevel = (patch: Partial<Comparability>): ComparisonResult => ({
    ...gpu,
    comparison: {
      ...gpu.comparison,
      comparability: { ...gpu.comparison.comparability, ...patch },
    },
  });
  const different = withLevel({
    level: 'not-comparable',
    reasons: ['The devices are different: A100 before, H100 after.'],
  });

  it('are stated above all, without a verdict and its colours', () => {
    const { container } = renderInPage(<ComparisonReport data={different} {...sides} />);
    const notice = screen.getByRole('region', { name: 'Not comparable' });
    expect(notice.textContent).toContain('A100 before, H100 after');
    expect(container.firstElementChild).toBe(notice);
    expect(verdictText(different.comparison)).toBe('Step 51.4 ms → 28.5 ms, not comparable');
    expect(notice.nextElementSibling?.className).toContain('compare-neutral');
    expect(container.querySelector('.headline-change')?.className).toContain('tone-same');
    const advice = screen.getByRole('table', { name: 'Advice before and after' });
    expect(within(advice).queryByText('fixed')).toBeNull();
    expect(within(advice).getAllByText('only before').length).toBeGreaterThan(0);
  });

  it('are compared with care where only settings differ', () => {
    const careful = withLevel({ level: 'with-care', cautions: ['with_stack was off and is on.'] });
    const { container } = renderInPage(<ComparisonReport data={careful} {...sides} />);
    const notice = screen.getByRole('region', { name: 'Comparable with care' });
    expect(notice.textContent).toContain('with_stack was off and is on.');
    expect(container.querySelector('.compare-neutral')).toBeNull();
    expect(container.querySelector('.tone-better')).not.toBeNull();
  });
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

  const answered = (candidates: readonly Candidate[]): ReturnType<typeof vi.spyOn> =>
    vi
      .spyOn(api, 'get')
      .mockImplementation((path) =>
        Promise.resolve(path === 'comparison/candidates' ? { schema: 1, candidates } : gpu),
      );

  it('shows the progress of reading a side', () => {
    const reading = recorded('synthetic_dataloader/fault', 1, 'reading');
    const page = <ComparePage selection={firstOf(fix)} runs={listed(reading, fix)} />;
    renderInPage(page, { baseRun: reading.id });
    expect(
      screen.getByRole('heading', { name: /Reading synthetic_dataloader\/fault/ }),
    ).toBeTruthy();
  });

  it('requests both sides, and swaps them', async () => {
    const get = answered([candidate(fault)]);
    const page = <ComparePage selection={firstOf(fix)} runs={listed(fault, fix)} />;
    const { store } = renderInPage(page);
    await waitFor(() => expect(screen.getByText('−44.5 %')).toBeTruthy());
    expect(get.mock.lastCall?.[1]).toMatchObject({ run: fix.id, base_run: fault.id });
    await userEvent.click(screen.getByRole('button', { name: 'Swap before and after' }));
    expect(store.current()).toMatchObject({ run: fault.id, baseRun: fix.id, baseWorker: '*' });
  });

  it('requests selected steps of both sides, and swaps them', async () => {
    const get = answered([candidate(fault)]);
    const page = <ComparePage selection={firstOf(fix)} runs={listed(fault, fix)} />;
    const { store } = renderInPage(page, { options: { 'base-steps': '5' } });
    await waitFor(() => expect(screen.getByText('−44.5 %')).toBeTruthy());
    expect(get.mock.lastCall?.[1]).toMatchObject({ base_steps: '5', steps: null });
    expect(screen.queryByRole('heading', { name: 'Advice' })).toBeNull();
    const [, after] = screen.getAllByRole('textbox', { name: 'Steps' });
    if (!after) throw new Error('no field');
    await userEvent.type(after, '7-');
    expect(after.getAttribute('aria-invalid')).toBe('true');
    await userEvent.type(after, '9{Enter}');
    expect(store.current().options).toEqual({ 'base-steps': '5', steps: '7-9' });
    await waitFor(() =>
      expect(get.mock.lastCall?.[1]).toMatchObject({ base_steps: '5', steps: '7-9' }),
    );
    await userEvent.click(screen.getByRole('button', { name: 'Swap before and after' }));
    expect(store.current().options).toMatchObject({ 'base-steps': '7-9', steps: '5' });
  });

  it('asks for a run without an earlier one of the same family', async () => {
    const stranger = recorded('resnet', 3);
    answered([
      candidate(stranger, { level: 'not-comparable', reason: 'same device, batch size 32 and 64' }),
    ]);
    const page = <ComparePage selection={firstOf(fix)} runs={listed(stranger, fix)} />;
    const { store } = renderInPage(page);
    const heading = /Compare synthetic_dataloader\/fix with which run\?/;
    await waitFor(() => expect(screen.getByRole('heading', { name: heading })).toBeTruthy());
    const list = screen.getByRole('list', { name: 'Likely baselines' });
    const link = within(list).getByRole('link', { name: /resnet/ });
    expect(link.textContent).toContain('not comparable');
    expect(link.textContent).toContain('Same device, batch size 32 and 64');
    await userEvent.click(link);
    expect(store.current()).toMatchObject({ baseRun: stranger.id, view: 'advice' });
  });

  it('says that the baseline of a link does not exist', () => {
    renderInPage(<ComparePage selection={firstOf(fix)} runs={listed(fix)} />, { baseRun: 'gone' });
    expect(screen.getByText('The baseline run was not found')).toBeTruthy();
  });
});
