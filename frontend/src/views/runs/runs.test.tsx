import { screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { describe, expect, it, vi } from 'vitest';
import { renderInPage } from '../../../tests/render';
import {
  cancelledRun,
  readingRun,
  readingSpan,
  resultOf,
  resultWith,
  runOf,
  spanOf,
  unreadableRun,
} from '../../../tests/states';
import { api } from '../../api/client';
import type { RunState, Runs } from '../../api/types.gen';
import { matcherOf } from '../../core/search';
import * as files from '../../host/download';
import fixture from './fixture.json';
import { type Line, type LineFilter, linesShown, USUAL_SORT } from './lines';
import { RunsPage } from './page';

const recorded = fixture as unknown as Runs;

const listed = (...runs: RunState[]): Runs => ({ ...recorded, runs });

const at = (minute: number, patch: Parameters<typeof spanOf>[0] = {}) =>
  spanOf({ trace: `t${minute}`, file: `w.1700000${minute}000000000.pt.trace.json`, ...patch });

const withResult = (run: RunState, result: RunState['result']): RunState => ({ ...run, result });

const early = withResult(
  runOf('early', 'ready', [at(100)]),
  resultOf({ step_ns: 90_000_000, step_count: 5, batch_size: 8 }),
);
const late = withResult(
  runOf('late', 'ready', [at(300, { damage: 'warning' }), at(301)]),
  resultWith('critical', 0.4, { step_ns: 10_000_000, busy_share: 0.5, trace_count: 2 }),
);
const middle = withResult(
  runOf('middle', 'ready', [at(200)]),
  resultWith('warning', 0.9, {
    step_ns: null,
    step_count: 0,
    step_durations_ns: [],
    batch_size: 64,
  }),
);
const three = listed(early, late, middle);

const filter: LineFilter = {
  filter: 'all',
  severity: 'any',
  matcher: matcherOf(''),
  sort: USUAL_SORT,
  open: new Set(),
  isGrouped: false,
};

function wordsOf(line: Line): string {
  if (line.kind === 'folder') return `${line.folder || '.'} (${line.runs.length})`;
  return line.kind === 'run' ? line.run.name : `- ${line.worker.name}`;
}

const lines = (runs: Runs, patch: Partial<LineFilter> = {}): string[] =>
  linesShown(runs, { ...filter, ...patch }).map(wordsOf);

describe('the lines', () => {
  it('are runs, the most serious first, with the files of an expanded run below it', () => {
    expect(lines(three)).toEqual(['late', 'middle', 'early']);
    expect(lines(three, { open: new Set(['late', 'early']) })).toEqual([
      'late',
      '- rank0',
      '- rank1',
      'middle',
      'early',
    ]);
  });

  it('are sorted by any column, with missing values last in both directions', () => {
    const by = (key: string, descending: boolean): string =>
      lines(three, { sort: { key, descending } }).join(' ');
    expect(by('name', false)).toBe('early late middle');
    expect(by('step', false)).toBe('late early middle');
    expect(by('step', true)).toBe('early late middle');
    expect(by('busy', true)).toBe('late early middle');
    expect(by('steps', true)).toBe('early late middle');
    expect(by('batch', false)).toBe('early middle late');
    expect(by('finding', false)).toBe('early middle late');
    expect(by('saving', true)).toBe('middle late early');
    expect(by('health', true)).toBe('late early middle');
    expect(by('recorded', true)).toBe('late middle early');
    const unread = runOf('unread', 'queued', [spanOf({ state: 'queued', events: null })]);
    const more = listed(unread, ...three.runs);
    for (const key of ['steps', 'finding', 'health'])
      for (const descending of [true, false])
        expect(lines(more, { sort: { key, descending } }).at(-1)).toBe('unread');
  });

  it('are filtered by state, by severity, and by text of the run, its finding and its files', () => {
    expect(lines(three, { filter: 'damaged' })).toEqual(['late', '- rank0']);
    expect(lines(three, { severity: 'critical' })).toEqual(['late']);
    expect(lines(three, { severity: 'none' })).toEqual(['early']);
    expect(lines(three, { matcher: matcherOf('rank1') })).toEqual(['late', '- rank1']);
    expect(lines(three, { matcher: matcherOf('late') })).toEqual(['late']);
    expect(lines(three, { matcher: matcherOf('a critical') })).toEqual(['late']);
    const all = listed(...three.runs, unreadableRun);
    expect(lines(all, { matcher: matcherOf('file is empty') })).toEqual(['broken']);
    expect(lines(all, { severity: 'none' })).toEqual(['early']);
  });

  it('are below their folders, which are in the order of their first runs', () => {
    const named = (run: RunState, name: string): RunState => ({ ...run, name });
    const runs = listed(
      named(early, 'a/x/early'),
      named(late, 'b/late'),
      named(middle, 'a/x/middle'),
      runOf('alone', 'ready', [at(1)]),
    );
    expect(lines(runs, { isGrouped: true })).toEqual([
      'b (1)',
      'b/late',
      'a/x (2)',
      'a/x/middle',
      'a/x/early',
      '. (1)',
      'alone',
    ]);
  });
});

describe('the page', () => {
  it('lists all runs', () => {
    renderInPage(<RunsPage runs={recorded} current="" />);
    const table = screen.getByRole('table', { name: 'Runs and their files' });
    expect(table.getAttribute('aria-rowcount')).toBe(String(recorded.runs.length + 1));
    const spans = recorded.runs.flatMap((run) => run.workers.flatMap((worker) => worker.spans));
    const size = `${spans.length} files in ${recorded.runs.length} runs`;
    expect(screen.getByText(new RegExp(size))).toBeTruthy();
    expect(screen.getByText(/files named <worker>/).textContent).toContain(recorded.logdir);
  });

  it('renders only the visible lines of thousands of files', () => {
    const spans = Array.from({ length: 4000 }, (_, rank) => spanOf({ trace: `t${rank}` }));
    const many = runOf('many', 'ready', spans);
    renderInPage(<RunsPage runs={listed(many)} current="" />, { options: { expanded: 'many' } });
    const table = screen.getByRole('table');
    expect(table.getAttribute('aria-rowcount')).toBe('4002');
    expect(within(table).getAllByRole('row').length).toBeLessThan(60);
  });

  it('expands a run, and keeps that in the URL', async () => {
    const { store } = renderInPage(<RunsPage runs={three} current="" />);
    await userEvent.click(screen.getByRole('button', { name: 'Files of late' }));
    expect(store.current().options).toEqual({ expanded: 'late' });
    expect(screen.getByRole('link', { name: 'rank1' })).toBeTruthy();
    await userEvent.click(screen.getByRole('button', { name: 'Files of late' }));
    expect(store.current().options).toEqual({});
  });

  it('links from a run to its advice, and from damage to its health', async () => {
    const { store } = renderInPage(<RunsPage runs={three} current="" />);
    await userEvent.click(screen.getByRole('link', { name: /damaged, warning/ }));
    expect(store.current()).toMatchObject({ view: 'health', run: 'late' });
    await userEvent.click(screen.getByRole('link', { name: 'middle' }));
    expect(store.current()).toMatchObject({ view: 'advice', run: 'middle' });
  });

  it('compares two runs, the older first; a third replaces the first', async () => {
    const { store } = renderInPage(<RunsPage runs={three} current="" />);
    const choose = (name: string): Promise<void> =>
      userEvent.click(screen.getByRole('checkbox', { name: `Select ${name} to compare` }));
    const button = screen.getByRole('button', { name: /^Compare/ });
    await userEvent.click(button);
    expect(store.current().view).not.toBe('compare');
    await choose('early');
    await choose('late');
    await choose('middle');
    expect(store.current().options.chosen).toBe('late,middle');
    await userEvent.click(button);
    expect(store.current()).toMatchObject({
      view: 'compare',
      run: 'late',
      worker: null,
      baseRun: 'middle',
      baseWorker: '*',
    });
  });
});

describe('reading', () => {
  it('shows phase, bytes, events and remaining time, and cancels a run', async () => {
    const change = vi.spyOn(api, 'change').mockResolvedValue(listed());
    const one = runOf('one', 'reading', [readingSpan({ trace: 'r0' })]);
    renderInPage(<RunsPage runs={listed(one, readingRun)} current="" />);
    const row = screen.getByRole('link', { name: 'one' }).closest('tr') as HTMLElement;
    for (const words of ['reading', '118 MiB of 492 MiB', '2,345,678 events', 'about 10 s left'])
      expect(within(row).getByText(words)).toBeTruthy();
    await userEvent.click(screen.getByRole('button', { name: /^Cancel 4/ }));
    await waitFor(() =>
      expect(change.mock.lastCall?.[0]).toEqual({ what: 'cancel', of: 'runs', id: 'llama_fsdp' }),
    );
  });

  it('shows error, path and hint of an unreadable file, and reads it again', async () => {
    const change = vi.spyOn(api, 'change').mockResolvedValue(listed());
    renderInPage(<RunsPage runs={listed(unreadableRun, cancelledRun)} current="" />);
    await userEvent.click(screen.getByTitle('Details of this file'));
    const drawer = screen.getByRole('complementary', { name: 'File' });
    for (const words of [
      'The file is empty.',
      'Record it again; the disk may have been full.',
      'broken/worker0.1.pt.trace.json',
    ])
      expect(within(drawer).getByText(words)).toBeTruthy();
    await userEvent.click(within(drawer).getByRole('button', { name: /^Read again/ }));
    await waitFor(() =>
      expect(change.mock.lastCall?.[0]).toEqual({ what: 'read', of: 'traces', id: 'broken-0' }),
    );
  });

  it('omits states without files from the filter', () => {
    renderInPage(<RunsPage runs={listed(unreadableRun)} current="" />);
    const disabled = (name: RegExp): boolean =>
      (screen.getByRole('radio', { name }) as HTMLInputElement).disabled;
    expect(disabled(/^Unreadable 1/)).toBe(false);
    expect(disabled(/^Cancelled 0/)).toBe(true);
  });
});

describe('results', () => {
  const rowOf = (name: string): HTMLElement =>
    screen.getByRole('link', { name }).closest('tr') as HTMLElement;

  it('name the first finding with its saving, and link to it in the advice', async () => {
    const { store } = renderInPage(<RunsPage runs={three} current="" />);
    expect(
      within(rowOf('middle')).getByText(/^saves [\d.–]+[\u00a0 ]% of the window$/),
    ).toBeTruthy();
    expect(within(rowOf('late')).getByText(/^saves 20.0–40.0[\u00a0 ]% of the step/)).toBeTruthy();
    expect(within(rowOf('early')).getByText('No findings')).toBeTruthy();
    await userEvent.click(screen.getByRole('link', { name: 'A critical finding' }));
    expect(store.current()).toMatchObject({
      view: 'advice',
      run: 'late',
      worker: null,
      open: 'item-sync',
      options: { about: 'job' },
    });
  });

  it('of one trace link to the advice on it', async () => {
    const { store } = renderInPage(<RunsPage runs={three} current="" />);
    await userEvent.click(screen.getByRole('link', { name: 'A warning finding' }));
    expect(store.current()).toMatchObject({ run: 'middle', open: 'item-sync', options: {} });
  });

  it('show step time with its steps, device use, batch, savings and health', () => {
    renderInPage(<RunsPage runs={three} current="late" />);
    const row = rowOf('late');
    expect(row.className).toContain('line-current');
    for (const text of ['10.0 ms', '50.0 %', '3', '4.00–8.00 ms'])
      expect(within(row).getByText(text)).toBeTruthy();
    expect(
      within(row).getByRole('img', { name: 'Durations of 3 steps, 18.0 ms to 22.0 ms' }),
    ).toBeTruthy();
    expect(within(rowOf('early')).getByText('no device')).toBeTruthy();
    expect(within(rowOf('early')).getByText('no damage')).toBeTruthy();
  });

  it('that are not available are blank, with the reason', () => {
    const withheld = withResult(
      runOf('inference', 'ready', [at(1), spanOf({ trace: 'u', file: 'w.pt.trace.json' })]),
      resultOf({ withheld: 'This is not training.' }),
    );
    renderInPage(
      <RunsPage runs={listed(early, middle, withheld, readingRun, unreadableRun)} current="" />,
    );
    const reason = (name: string, title: RegExp): number =>
      within(rowOf(name)).getAllByTitle(title).length;
    expect(reason('middle', /No complete step/)).toBe(1);
    expect(reason('inference', /^This is not training/)).toBe(1);
    expect(reason('early', /no potential saving/)).toBe(1);
    expect(reason('inference', /^Unknown: record it/)).toBe(1);
    expect(reason('llama_fsdp', /^Being read/)).toBe(5);
    expect(reason('broken', /cannot be read/)).toBe(5);
    expect(reason('broken', /names of its files have no time/)).toBe(1);
  });

  it('arrive one after the other, with a note until all are there', () => {
    const waiting = runOf('waiting', 'ready', [at(1)]);
    renderInPage(<RunsPage runs={{ ...listed(waiting), has_pending_results: true }} current="" />);
    expect(screen.getByRole('status').textContent).toBe('Computing results…');
    expect(within(rowOf('waiting')).getAllByTitle('Being computed')).toHaveLength(5);
  });

  it('are filtered by severity and grouped by folder, which the URL says', async () => {
    const runs = listed(...three.runs.map((run) => ({ ...run, name: `log/${run.name}` })));
    const { store } = renderInPage(<RunsPage runs={runs} current="" />);
    await userEvent.click(screen.getByRole('radio', { name: 'Critical 1' }));
    expect(screen.queryByRole('link', { name: 'log/middle' })).toBeNull();
    await userEvent.click(screen.getByRole('radio', { name: 'Folder' }));
    expect(store.current()).toMatchObject({ group: 'folder', options: { severity: 'critical' } });
    expect(screen.getByRole('rowheader', { name: 'log 1 run' })).toBeTruthy();
    const disabled = screen.getByRole('radio', { name: 'Info 0' }) as HTMLInputElement;
    expect(disabled.disabled).toBe(true);
  });

  it('are sorted by a click on a header, the largest first', async () => {
    const { store } = renderInPage(<RunsPage runs={three} current="" />);
    await userEvent.click(screen.getByRole('button', { name: 'Step time' }));
    expect(store.current().sort).toEqual({ key: 'step', descending: true });
    const names = screen
      .getAllByRole('rowheader')
      .map((head) => head.querySelector('a')?.textContent);
    expect(names).toEqual(['early', 'late', 'middle']);
  });
});

it('exports the visible runs', async () => {
  const saved = vi.spyOn(files, 'download').mockImplementation(() => undefined);
  renderInPage(<RunsPage runs={three} current="" />, { options: { state: 'damaged' } });
  await userEvent.click(screen.getByRole('button', { name: 'CSV' }));
  expect(saved.mock.lastCall?.[2]).toBe(
    'Run,State,Step time (ns),Device busy (share of 1),Steps,Batch,Severity,First finding,' +
      '"First finding, least saving (ns)","First finding, greatest saving (ns)",' +
      '"All savings, least (ns)","All savings, greatest (ns)",' +
      '"All savings, greatest fraction (share of 1)",' +
      'Worst damage,Recorded (ns since 1970),Files,Size (bytes),Events,Problem\r\n' +
      'late,ready,10000000,0.5,3,,critical,A critical finding,4000000,8000000,4000000,8000000,0.4,' +
      'warning,1700000301000000000,2,2000000,2400,\r\n',
  );
});
