import { screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { describe, expect, it, vi } from 'vitest';
import { type Rendered, renderInPage } from '../../../tests/render';
import { outcome } from '../../../tests/samples';
import { fakeApi, selectionOf } from '../../../tests/views';
import type {
  CollectiveRanks,
  Collectives,
  Distributed,
  RankBreakdown,
  RankSteps,
  Representative,
  Straggler,
} from '../../api/types.gen';
import * as files from '../../host/download';
import type { Patch } from '../../state/navigation';
import type { Selection } from '../../state/selection';
import { barRows } from './bars';
import { orderedMembers, refFrom, refText } from './collective';
import fixture from './fixture.json';
import collective from './fixtures/distributed-collective.json';
import collectives from './fixtures/distributed-collectives.json';
import devices from './fixtures/distributed-devices.json';
import groups from './fixtures/distributed-groups.json';
import ranks from './fixtures/distributed-ranks.json';
import steps from './fixtures/distributed-steps.json';
import Page from './page';
import { kindName, missingOf, rangesOf, stepRanges } from './ranks';
import { balanceOf, clockNote, lateNote } from './summary';

const summary = fixture as unknown as Distributed;
const breakdown = ranks as unknown as RankBreakdown;
const late = summary.stragglers[0] as Straggler;

const api = fakeApi({
  distributed: summary,
  'distributed/steps': steps,
  'distributed/ranks': ranks,
  'distributed/collectives': collectives,
  'distributed/collective': collective,
  'distributed/groups': groups,
  'distributed/devices': devices,
  advice: { name: 'run', workers: [], outcomes: [], merged: [], verdict: '' },
});

const selection = (): Selection => selectionOf({ run: 'ranks/one_slow_rank' });

const shown = (start: Patch = {}): Rendered =>
  renderInPage(<Page selection={selection()} />, { view: 'distributed', ...start });

describe('a run of two ranks with a straggler', () => {
  it('shows how many ranks were recorded', async () => {
    shown();
    expect(await screen.findByText(/2 of 2 ranks, 1 node, 1 process group, 6 steps/)).toBeTruthy();
    expect(screen.getByText(/share the clock of rank0’s machine/)).toBeTruthy();
  });

  it('names the straggler, its steps and cause, and links to its finding', async () => {
    shown();
    const list = await screen.findByRole('region', { name: 'Stragglers' });
    expect(within(list).getByRole('heading', { name: '1 straggler' })).toBeTruthy();
    expect(within(list).getByRole('link', { name: 'Rank 1' })).toBeTruthy();
    expect(within(list).getByText('since step 3')).toBeTruthy();
    expect(within(list).getByText(/Last to 6 of 6 collectives/).textContent).toContain(
      'It computes longer',
    );
    expect(within(list).getByRole('link', { name: 'Advice' })).toBeTruthy();
  });

  it('shows lateness by default, and another metric on request', async () => {
    const { store } = shown();
    const map = await screen.findByRole('img', { name: /Lateness of 2 ranks in 6 steps/ });
    expect(map).toBeTruthy();
    await userEvent.click(screen.getByRole('radio', { name: 'Computing' }));
    expect(store.current().options).toEqual({ metric: 'computing' });
    await waitFor(() => expect(api.last('distributed/steps').get('metric')).toBe('computing'));
  });

  it('supports the keyboard, announces cells, and selects rank and step on Enter', async () => {
    const { store } = shown();
    const map = await screen.findByRole('img', { name: /Lateness/ });
    map.focus();
    await userEvent.keyboard('{ArrowDown}{ArrowDown}{ArrowRight}');
    const status = map.parentElement?.querySelector('[role="status"]');
    expect(status?.textContent).toMatch(/^Rank 1, step 4/);
    await userEvent.keyboard('{Enter}');
    expect(store.current().worker).toBe('rank1');
    expect(store.current().step).toBe(4);
    expect(await screen.findByText('Rank 1, step 4')).toBeTruthy();
    await userEvent.click(screen.getByRole('button', { name: 'Clear selection' }));
    expect(store.current().worker).toBeNull();
  });

  it('shows the same values as a table with selectable ranks', async () => {
    const { store } = shown();
    const table = within(await screen.findByRole('table', { hidden: true }));
    const names = table.getAllByRole('rowheader', { hidden: true }).map((row) => row.textContent);
    expect(names).toEqual(['Rank 1', 'Rank 0']);
    await userEvent.click(table.getByRole('button', { name: 'Rank 1', hidden: true }));
    expect(store.current().worker).toBe('rank1');
  });

  it('requests the selected step, or the mean step if the run lacks it', async () => {
    shown({ step: 5 });
    await screen.findByRole('button', { name: /^Rank 1/ });
    expect(api.last('distributed/ranks').get('step')).toBe('5');
    api.requests.length = 0;
    shown({ step: 999 });
    await waitFor(() => expect(api.requests.some((path) => path.includes('/ranks'))).toBe(true));
    expect(api.last('distributed/ranks').get('step')).toBeNull();
  });

  it('shows a bar per rank, sorted by the selected category', async () => {
    const { store } = shown();
    const card = within(await screen.findByRole('region', { name: 'Ranks side by side' }));
    await card.findByRole('button', { name: /^Rank 0/ });
    const bars = (): (string | undefined)[] =>
      card.getAllByRole('button', { name: /^Rank \d/ }).map((row) => row.textContent?.slice(0, 6));
    expect(bars()).toEqual(['Rank 0', 'Rank 1']);
    await userEvent.click(card.getByRole('button', { name: /^Computing\d|^Computing \d/ }));
    expect(store.current().options).toEqual({ 'bars-sort': 'computing' });
    expect(bars()).toEqual(['Rank 1', 'Rank 0']);
  });

  it('exports the heat map in full precision', async () => {
    const download = vi.spyOn(files, 'download').mockImplementation(() => {});
    shown();
    const card = within(await screen.findByRole('region', { name: 'Ranks by step' }));
    await card.findByRole('img');
    await userEvent.click(card.getByText('Export'));
    await userEvent.click(card.getByRole('button', { name: 'CSV' }));
    const [name, , text] = download.mock.calls[0] ?? [];
    expect(name).toMatch(/one_slow_rank_ranks_late\.csv$/);
    const lines = String(text).trim().split('\r\n');
    expect(lines).toHaveLength(3);
    expect(lines[0]).toContain('Lateness step 3 (ns)');
    const values = (steps as unknown as RankSteps).values[1] ?? [];
    const scale = (steps as unknown as RankSteps).scale;
    expect(lines[2]).toContain(values.map((value) => (value ?? 0) * scale).join(','));
  });
});

describe('collectives', () => {
  it('show all ranks on one clock and mark the last to arrive', async () => {
    shown({ options: { tab: 'collectives', collectives: 'each' } });
    const table = await screen.findByRole('grid', { name: /Collectives/ });
    const row = within(table).getAllByRole('row')[1] as HTMLElement;
    await userEvent.click(row);
    expect(await screen.findByText('waiting', { exact: true })).toBeTruthy();
    const ranksOf = collective as unknown as CollectiveRanks;
    const opened = (collectives as unknown as Collectives).opens[0];
    await waitFor(() =>
      expect(api.last('distributed/collective').get('event')).toBe(String(opened?.event)),
    );
    const last = ranksOf.members.find((member) => member.is_last);
    expect(screen.getByText('last').closest('.member')?.textContent).toContain(
      `rank ${last?.rank}`,
    );
    expect(screen.getByText(/matched by/)).toBeTruthy();
  });

  it('are identified in the URL by any member', () => {
    expect(refFrom(refText({ worker: 'a:b', event: 12 }))).toEqual({ worker: 'a:b', event: 12 });
    expect(refFrom(undefined)).toBeNull();
    expect(refFrom('rank0')).toBeNull();
  });

  it('are sorted by lateness on request', () => {
    const { members } = collective as unknown as CollectiveRanks;
    expect(orderedMembers(members, 'last')[0]?.is_last).toBe(true);
    expect(orderedMembers(members, 'rank')).toEqual(members);
  });

  it('are listed with their process groups', async () => {
    shown({ options: { tab: 'groups' } });
    expect(await screen.findByRole('grid', { name: 'Process groups' })).toBeTruthy();
  });

  it('are listed with devices, or with the reason why there are none', async () => {
    shown({ options: { tab: 'devices' } });
    expect(await screen.findByText(/Nothing ran on a device/)).toBeTruthy();
  });
});

describe('missing data', () => {
  it('of all ranks but one is reported, with the code that records them', async () => {
    api.responses.distributed = {
      ...summary,
      ranks: summary.ranks.slice(0, 1),
      world_size: 8,
      stragglers: [],
      matched_count: 0,
    };
    shown();
    expect(await screen.findByRole('heading', { name: 'Only one rank was recorded' })).toBeTruthy();
    expect(screen.getByText(/rank0 only, of a job of 8 ranks/)).toBeTruthy();
    expect(screen.getByText(/worker_name=/)).toBeTruthy();
    expect(screen.queryByRole('region', { name: 'Stragglers' })).toBeNull();
  });

  it('lists missing ranks', async () => {
    api.responses.distributed = {
      ...summary,
      world_size: 8,
      missing_count: 6,
      missing_ranks: '2-7',
    };
    shown();
    expect((await screen.findByText(/6 ranks of 8 have no trace here/)).textContent).toContain(
      '2-7',
    );
  });

  it('is not reported while ranks are being read', async () => {
    api.responses.distributed = {
      ...summary,
      waiting_count: 6,
      missing_count: 6,
      missing_ranks: '2-7',
    };
    shown();
    expect(await screen.findByText(/Clocks/)).toBeTruthy();
    expect(screen.queryByText(/have no trace here/)).toBeNull();
  });

  it('is not reported for cancelled ranks', () => {
    const incomplete = { ...summary, missing_count: 6, missing_ranks: '2-7' };
    const whole = selection();
    const span = { ...whole.span, trace: 'cancelled', state: 'cancelled' as const };
    const workers = [...whole.run.workers, { ...whole.worker, name: 'rank2', spans: [span] }];
    expect(missingOf({ ...whole, run: { ...whole.run, workers } }, incomplete).count).toBe(0);
    expect(missingOf(whole, incomplete)).toEqual({ count: 6, ranks: '2-7' });
  });

  it('shows an empty state without any metric', async () => {
    api.responses['distributed/steps'] = { ...steps, empty: 'No device was recorded.' };
    shown();
    expect(await screen.findByText('No device was recorded.')).toBeTruthy();
  });

  it('is explained if a time range is selected', async () => {
    shown({ time: { startNs: 1, endNs: 2 } });
    expect(await screen.findByText(/does not filter this view/)).toBeTruthy();
  });
});

describe('summary texts', () => {
  it('state the clock alignment and its error', () => {
    const clocks = {
      reference: 'rank0',
      machine_count: 8,
      collective_count: 1011,
      lost_count: 5,
      error_ns: 38_000,
      likely_error_ns: 20_000,
      drift_count: 1,
    };
    expect(clockNote(clocks, 1024)).toBe(
      'Clocks: 8 share the clock of rank0’s machine, 1,011 of 1,024 are aligned with it by collectives that synchronize all ranks; the error is at most 38.0 µs, usually below 20.0 µs; the drift of 1 is corrected; 5 could not be aligned.',
    );
    expect(clockNote({ ...clocks, reference: '' }, 2)).toMatch(/^Clocks could not be aligned/);
  });

  it('name the latest rank if no rule reports one', () => {
    expect(lateNote({ ...summary, stragglers: [] })).toMatch(/inconclusive/);
    expect(lateNote({ ...summary, stragglers: [{ ...late, is_straggler: false }] })).toBe(
      'No rank is late to collectives to a significant degree.',
    );
    expect(lateNote(summary)).toMatch(/^Rank 1 is late to collectives since step 3/);
  });

  it('list findings that compare ranks, the worst first', () => {
    const of = (category: string, severity: 'critical' | 'info', status: 'found' | 'passed') =>
      outcome({ category, severity, status, message: `${category} ${severity}` });
    const findings = balanceOf([
      of('distributed balance', 'info', 'found'),
      of('distributed balance', 'critical', 'found'),
      of('distributed balance', 'critical', 'passed'),
      of('input', 'critical', 'found'),
    ]);
    expect(findings.map(({ message }) => message)).toEqual([
      'distributed balance critical',
      'distributed balance info',
    ]);
  });

  it('format ranks, steps and kinds', () => {
    expect(rangesOf('3, 8-15')).toEqual([
      { first: 3, last: 3 },
      { first: 8, last: 15 },
    ]);
    expect(stepRanges([2, 3, 4, 9])).toBe('2–4, 9');
    expect([kindName('all_reduce'), kindName('broadcast')]).toEqual(['All-reduce', 'Broadcast']);
  });
});

describe('bars', () => {
  it('of nodes are means of their ranks and sum to the whole', () => {
    const rows = breakdown.rows.map((row) => ({ ...row, host: 'node0' }));
    const [node] = barRows({ ...breakdown, rows }, { whole: 'step', unit: 'node', sort: 'rank' });
    const mean = rows.reduce((sum, row) => sum + row.duration_ns, 0) / rows.length;
    expect([node?.name, node?.count, node?.wholeNs]).toEqual(['node0', rows.length, mean]);
    expect(node?.partsNs?.reduce((sum, part) => sum + part, 0)).toBeCloseTo(mean, 3);
  });

  it('of communication are not split if the split is unknown', () => {
    const rows = breakdown.rows.map((row) => ({ ...row, transfer_ns: null, wait_ns: null }));
    const options = { whole: 'communication', unit: 'rank', sort: 'waiting' } as const;
    expect(barRows({ ...breakdown, rows }, options).map((row) => row.partsNs)).toEqual([
      null,
      null,
    ]);
  });
});

describe('a job of many ranks', () => {
  const ranks = Array.from({ length: 1024 }, (_, rank) => ({
    ...summary.ranks[0],
    rank,
    worker: `rank${rank}`,
    host: `node${rank >> 3}`,
  }));
  const straggler: Straggler = {
    ...late,
    rank: 643,
    worker: 'rank643',
    found_by: 'own work',
    lateness_ns: -456,
    own_excess_ns: 8_220_000,
    cause: 'data loading',
  };
  const slowest: Representative = {
    rank: 643,
    worker: 'rank643',
    host: 'node80',
    kind: 'slowest',
    figure: 'own_work',
    value: 45e6,
    usual: 37e6,
    unit: 'ns',
    score: 40,
    step_ns: 45e6,
    reason: 'It works 8.22 ms a step longer than the median rank.',
  };
  const job: Distributed = {
    ...summary,
    ranks: ranks as Distributed['ranks'],
    world_size: 1026,
    missing_count: 2,
    missing_ranks: '17, 38',
    host_count: 128,
    stragglers: [straggler],
    straggler_count: 1,
    representatives: [slowest],
  };

  it('shows key figures first', async () => {
    api.responses.distributed = job;
    shown();
    const verdict = await screen.findByRole('region', { name: 'Verdict' });
    expect(verdict.textContent).toContain('StragglerRank 643');
    expect(verdict.textContent).toContain('Ranks1,024 of 1,026 2 missing');
    await waitFor(() => expect(verdict.textContent).toContain('Lost to waiting'));
  });

  it('selects the metric that shows the straggler, even if its whole group is late', async () => {
    api.responses.distributed = job;
    shown();
    const list = await screen.findByRole('region', { name: 'Stragglers' });
    expect(list.textContent).toContain('8.22 ms');
    expect(list.textContent).not.toContain('456 ns');
    await waitFor(() => expect(api.last('distributed/steps').get('metric')).toBe('own'));
  });

  it('lists the ranks to inspect with reasons and links', async () => {
    api.responses.distributed = job;
    const { store } = shown();
    const card = await screen.findByRole('region', { name: 'Ranks to inspect' });
    expect(
      within(card).getByText('It works 8.22 ms a step longer than the median rank.'),
    ).toBeTruthy();
    await userEvent.click(within(card).getByRole('link', { name: 'Timeline' }));
    expect(store.current()).toMatchObject({ view: 'timeline', worker: 'rank643' });
  });

  it('renders only visible rows', async () => {
    api.responses.distributed = job;
    const { container } = shown();
    await screen.findByRole('region', { name: 'Ranks to inspect' });
    expect(container.querySelectorAll('*').length).toBeLessThan(1500);
  });
});
