import { screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { type Rendered, renderInPage } from '../../../../tests/render';
import { mergedOutcome, outcome, runReport } from '../../../../tests/samples';
import { runOf, spanOf } from '../../../../tests/states';
import { fakeApi, selectionOf } from '../../../../tests/views';
import type { JobReport, JobSaving, Outcome, RunReport } from '../../../api/types.gen';
import type { Patch } from '../../../state/navigation';
import { dismissals } from '../dismissed';
import Page from '../page';

vi.mock('../mini_timeline', () => ({ MiniTimeline: () => <p>around the worst</p> }));

const RANKS = 1024;
const spans = Array.from({ length: RANKS }, (_, rank) =>
  spanOf({
    trace: `t${rank}`,
    file: `rank${rank}.pt.trace.json.gz`,
    damage: rank === 300 ? 'critical' : null,
    ...(rank < 700 && rank > 680
      ? {
          state: 'unreadable' as const,
          problem: { path: `rank${rank}`, message: 'Input/output error', remedy: 'See the mount.' },
        }
      : {}),
  }),
);
const run = runOf('job', 'ready', spans);

const saving = (share: number): JobSaving => ({
  low_share: share / 2,
  high_share: share,
  low_gpu_hours: null,
  high_gpu_hours: null,
  low_money: null,
  high_money: null,
});
const job: JobReport = {
  step_ns: 37_000_000,
  gpu_count: 1024,
  gpu_source: 'ranks of the job',
  gpu_hour_price: null,
  is_asked: false,
  total: saving(0.25),
  withheld: '',
  method: 'Every rank waits for the slowest.',
  outlook: {
    rules: ['straggler-rank'],
    low_ns: 29_000_000,
    high_ns: 33_000_000,
    message: 'With “Rank 643 is late” fixed, it is shorter.',
  },
};
const late = mergedOutcome({
  outcome: outcome({
    rule: 'straggler-rank',
    title: 'Rank 643 is late',
    trace: '',
    severity: 'critical',
    message: 'Rank 643 comes 8 ms late.',
    blamed: ['t643'],
    evidence: [
      {
        label: 'Lateness in a collective',
        value: 8_000_000,
        unit: 'ns',
        link: { view: 'overview', rank: 643, trace: null },
      },
    ] as unknown as Outcome['evidence'],
  }),
  traces: [],
  when: 'in every step',
  job_saving: saving(0.2),
  related: [
    {
      rule: 'dataloader-no-workers',
      title: 'The DataLoader has no workers',
      trace: 't643',
      rank: 643,
      name: 'rank643',
      is_only_there: true,
      low_ns: 6_000_000,
      high_ns: 8_000_000,
      peers_high_ns: 0,
      where: 'rank 643',
      trace_count: 1,
    },
  ],
});
const everywhere = mergedOutcome({
  outcome: outcome({ rule: 'item-sync', title: 'Single values', trace: 't7', severity: 'warning' }),
  traces: spans.map(({ trace }) => trace),
  where: 'all 1,024 recordings',
  ranks: '0-1023',
  job_saving: saving(0.05),
});
const bounded = mergedOutcome({
  outcome: outcome({ rule: 'stray', title: 'On one rank', trace: 't9', severity: 'info' }),
  traces: ['t9'],
  where: 'rank 9 of 1,024',
  low_ns: 1_000_000,
  high_ns: 5_000_000,
  job_saving: saving(0),
});
const report: RunReport = {
  ...runReport([outcome({ rule: 'own', title: 'Of this rank', trace: 't0' })], { trace: 't0' }),
  merged: [late, everywhere, bounded],
  verdict: 'Rank 643 holds up the job.',
  job,
};

const api = fakeApi({ advice: report });
beforeEach(() => localStorage.clear());

const shown = (start: Patch = {}): Rendered =>
  renderInPage(<Page selection={selectionOf(start, { runs: [run] })} />, start);

describe('the advice for a job of a thousand ranks', () => {
  it('shows merged findings with their ranks and steps', async () => {
    const { store, container } = shown();
    expect(await screen.findByText('Rank 643 holds up the job.')).toBeTruthy();
    const head = screen.getByRole('button', { name: /Rank 643 is late/ });
    expect(head.textContent).toContain('in every step');
    expect(head.textContent).toContain('cause: rank 643');
    expect(head.textContent).toContain('10.0–20.0\u00a0% of the step');
    expect(screen.getByRole('button', { name: /Single values/ }).textContent).toContain(
      'all 1,024 recordings',
    );
    expect(screen.queryByText('Of this rank')).toBeNull();
    expect(store.current().options.about).toBe('job');
    expect(container.querySelectorAll('*').length).toBeLessThan(500);
  });

  it('merges findings of many ranks and counts those not listed', async () => {
    const [finding] = late.related;
    if (!finding) throw new Error('the late rank says something');
    const half = { ...finding, where: 'ranks 512-1023', trace_count: 512 };
    const many = { ...report, merged: [{ ...late, related: [half], related_more: 1200 }] };
    api.responses.advice = many;
    shown();
    const section = (await screen.findByText('Findings of these ranks')).parentElement;
    expect([...(section?.querySelectorAll('li') ?? [])].map((item) => item.textContent)).toEqual([
      'Ranks 512-1023: The DataLoader has no workers saves 6.00–8.00 ms per step, not in its peers',
      'and 1,200 more',
    ]);
  });

  it('groups damaged and unreadable traces by problem', async () => {
    shown();
    const card = await screen.findByRole('region', { name: 'Missing and damaged traces' });
    expect(card.textContent).toContain('1 trace is damaged: rank 300.');
    expect(card.textContent).toContain('19 files could not be read: rank 681, rank 682');
    expect(card.textContent).toContain('and 7 more. Input/output error. See the mount.');
  });

  it('lists ranks without a trace, in the summary and in their finding', async () => {
    const missing = mergedOutcome({
      outcome: outcome({
        rule: 'missing-ranks',
        category: 'trace quality',
        reports_missing_data: true,
        title: 'Some ranks of the job were not recorded',
        message: 'Ranks 8-9 have no recording, of 1,024 ranks.',
        severity: 'info',
      }),
    });
    const whole = { ...report, merged: [late, missing] };
    api.responses.advice = whole;
    shown();
    const card = await screen.findByRole('region', { name: 'Missing and damaged traces' });
    expect(card.textContent).toContain(
      'Some ranks of the job were not recorded: Ranks 8-9 have no recording, of 1,024 ranks.',
    );
    expect(screen.getByRole('button', { name: /Some ranks of the job/ })).toBeTruthy();
  });

  it('shows GPU hours per day, and the cost if a price is set', async () => {
    const { store } = shown({ open: 'none' });
    const facts = await screen.findByText('3,072–6,144 GPU-hours');
    expect(facts).toBeTruthy();
    await userEvent.type(screen.getByLabelText('Price of a GPU-hour'), '2.5{Enter}');
    expect(store.current().options.price).toBe('2.5');
    expect(screen.getByText('7,680–15,360')).toBeTruthy();
    const gpus = screen.getByLabelText('GPUs');
    await userEvent.clear(gpus);
    await userEvent.type(gpus, '100{Enter}');
    expect(screen.getByText('300–600 GPU-hours')).toBeTruthy();
    expect(localStorage.getItem('stepscope.gpu-hour-price')).toBe('2.5');
  });

  it('links from the straggler to its finding', async () => {
    const { store } = shown({ open: 'straggler-rank' });
    const link = await screen.findByRole('link', {
      name: 'Rank 643: The DataLoader has no workers',
    });
    await userEvent.click(link);
    expect(store.current()).toMatchObject({
      worker: 'rank643',
      open: 'dataloader-no-workers',
      options: { about: 'rank' },
    });
  });

  it('shows no saving for the job if another rank is the bottleneck', async () => {
    shown();
    const head = await screen.findByRole('button', { name: /On one rank/ });
    expect(head.textContent).toContain('no saving for the job on its own');
    expect(head.textContent).toContain('1.00–5.00 ms in a rank');
    expect(head.textContent).not.toContain('GPU-hours');
  });

  it('links from the evidence to its rank', async () => {
    const { store } = shown({ open: 'straggler-rank' });
    await userEvent.click(await screen.findByRole('link', { name: /^overview of rank 643/ }));
    expect(store.current()).toMatchObject({ view: 'overview', worker: 'rank643' });
  });

  it('restores dismissed findings', async () => {
    dismissals.forget();
    dismissals.dismiss(late.outcome);
    shown({ open: 'straggler-rank' });
    await userEvent.click(await screen.findByRole('button', { name: 'Restore', hidden: true }));
    expect(dismissals.current()).toEqual([]);
  });

  it('links to each rank of a finding, by number', async () => {
    const { store } = shown({ open: 'item-sync' });
    await userEvent.click(await screen.findByRole('button', { name: /Rank one of 1,024/ }));
    await userEvent.type(screen.getByRole('combobox', { name: 'Find a rank' }), '512');
    const list = screen.getByRole('listbox', { name: 'Rank' });
    await userEvent.click(within(list).getAllByRole('option')[0] as HTMLElement);
    expect(store.current()).toMatchObject({ worker: 'rank512', open: 'item-sync' });
  });
});

it('a link with a worker shows the advice of that rank', async () => {
  shown({ worker: 'rank0' });
  expect(await screen.findByText('Of this rank')).toBeTruthy();
  expect((screen.getByRole('radio', { name: 'rank 0' }) as HTMLInputElement).checked).toBe(true);
});
