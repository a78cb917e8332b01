import { screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { describe, expect, it, vi } from 'vitest';
import { renderInPage } from '../../../tests/render';
import {
  cancelledRun,
  readingRun,
  readingSpan,
  runOf,
  spanOf,
  unreadableRun,
} from '../../../tests/states';
import { api } from '../../api/client';
import type { RunState, Runs } from '../../api/types.gen';
import { matcherOf } from '../../core/search';
import * as files from '../../host/download';
import fixture from './fixture.json';
import { type LineFilter, linesShown, USUAL_SORT } from './lines';
import { RunsPage } from './page';

const recorded = fixture as unknown as Runs;

const listed = (...runs: RunState[]): Runs => ({ ...recorded, runs });

const at = (minute: number, patch: Parameters<typeof spanOf>[0] = {}) =>
  spanOf({ trace: `t${minute}`, file: `w.1700000${minute}000000000.pt.trace.json`, ...patch });

const early = runOf('early', 'ready', [at(100, { file_bytes: 5, events: 10 })]);
const late = runOf('late', 'ready', [
  at(300, { file_bytes: 9, events: null, damage: 'warning' }),
  at(301, { file_bytes: 2, events: 3 }),
]);
const middle = runOf('middle', 'ready', [at(200, { file_bytes: 7, events: 99 })]);
const three = listed(early, late, middle);

const filter: LineFilter = {
  filter: 'all',
  matcher: matcherOf(''),
  sort: USUAL_SORT,
  open: new Set(),
};

const lines = (runs: Runs, patch: Partial<LineFilter> = {}): string[] =>
  linesShown(runs, { ...filter, ...patch }).map((line) =>
    line.kind === 'run' ? line.run.name : `- ${line.worker.name}`,
  );

describe('the lines', () => {
  it('are runs, the latest first, with the files of an expanded run below it', () => {
    expect(lines(three)).toEqual(['late', 'middle', 'early']);
    expect(lines(three, { open: new Set(['late', 'early']) })).toEqual([
      'late',
      '- rank1',
      '- rank0',
      'middle',
      'early',
    ]);
  });

  it('are sorted by any column, with missing values last', () => {
    const by = (key: string, descending: boolean): string =>
      lines(three, { sort: { key, descending } }).join(' ');
    expect(by('name', false)).toBe('early late middle');
    expect(by('size', true)).toBe('late middle early');
    expect(by('events', true)).toBe('middle early late');
    const unread = runOf('unread', 'queued', [at(1, { state: 'queued', events: null })]);
    const more = listed(unread, ...three.runs);
    for (const descending of [true, false])
      expect(lines(more, { sort: { key: 'events', descending } }).at(-1)).toBe('unread');
  });

  it('are filtered by state and by text of any column', () => {
    expect(lines(three, { filter: 'damaged' })).toEqual(['late', '- rank0']);
    expect(lines(three, { matcher: matcherOf('rank1') })).toEqual(['late', '- rank1']);
    expect(lines(three, { matcher: matcherOf('late') })).toEqual(['late']);
    const all = listed(...three.runs, unreadableRun);
    expect(lines(all, { matcher: matcherOf('file is empty') })).toEqual(['broken']);
  });
});

describe('the page', () => {
  it('lists all runs', () => {
    renderInPage(<RunsPage runs={recorded} />);
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
    renderInPage(<RunsPage runs={listed(many)} />, { options: { expanded: 'many' } });
    const table = screen.getByRole('table');
    expect(table.getAttribute('aria-rowcount')).toBe('4002');
    expect(within(table).getAllByRole('row').length).toBeLessThan(60);
  });

  it('expands a run, and keeps that in the URL', async () => {
    const { store } = renderInPage(<RunsPage runs={three} />);
    await userEvent.click(screen.getByRole('button', { name: 'Files of late' }));
    expect(store.current().options).toEqual({ expanded: 'late' });
    expect(screen.getByRole('link', { name: 'rank1' })).toBeTruthy();
    await userEvent.click(screen.getByRole('button', { name: 'Files of late' }));
    expect(store.current().options).toEqual({});
  });

  it('links from a run to its advice, and from damage to its health', async () => {
    const { store } = renderInPage(<RunsPage runs={three} />);
    await userEvent.click(screen.getByRole('link', { name: /damaged, warning/ }));
    expect(store.current()).toMatchObject({ view: 'health', run: 'late' });
    await userEvent.click(screen.getByRole('link', { name: 'middle' }));
    expect(store.current()).toMatchObject({ view: 'advice', run: 'middle' });
  });

  it('compares two runs, the older first; a third replaces the first', async () => {
    const { store } = renderInPage(<RunsPage runs={three} />);
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
    renderInPage(<RunsPage runs={listed(one, readingRun)} />);
    const row = screen.getByRole('link', { name: 'one' }).closest('tr') as HTMLElement;
    for (const words of ['reading', '123 MB of 516 MB', '2,345,678 events', 'about 10 s left'])
      expect(within(row).getByText(words)).toBeTruthy();
    await userEvent.click(screen.getByRole('button', { name: /^Cancel 4/ }));
    await waitFor(() =>
      expect(change.mock.lastCall?.[0]).toEqual({ what: 'cancel', of: 'runs', id: 'llama_fsdp' }),
    );
  });

  it('shows error, path and hint of an unreadable file, and reads it again', async () => {
    const change = vi.spyOn(api, 'change').mockResolvedValue(listed());
    renderInPage(<RunsPage runs={listed(unreadableRun, cancelledRun)} />);
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
    renderInPage(<RunsPage runs={listed(unreadableRun)} />);
    const disabled = (name: RegExp): boolean =>
      (screen.getByRole('radio', { name }) as HTMLInputElement).disabled;
    expect(disabled(/^Unreadable 1/)).toBe(false);
    expect(disabled(/^Cancelled 0/)).toBe(true);
  });
});

it('exports the visible files', async () => {
  const saved = vi.spyOn(files, 'download').mockImplementation(() => undefined);
  renderInPage(<RunsPage runs={three} />, { options: { state: 'damaged' } });
  await userEvent.click(screen.getByRole('button', { name: 'CSV' }));
  expect(saved.mock.lastCall?.[2]).toBe(
    'Run,Worker,Rank,Span,File,State,Size (bytes),Events,Recorded (ns since 1970),Worst damage,Problem\r\n' +
      'late,rank0,0,1,w.1700000300000000000.pt.trace.json,ready,9,,1700000300000000000,warning,\r\n',
  );
});
