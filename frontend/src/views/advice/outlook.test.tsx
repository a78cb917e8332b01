import { screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { beforeEach, describe, expect, it } from 'vitest';
import { renderInPage } from '../../../tests/render';
import { outcome, runReport } from '../../../tests/samples';
import type { Outlook } from '../../api/types.gen';
import { Advice } from './advice';
import { dismissals } from './dismissed';
import { JobOutlook } from './outlook';

const outlook: Outlook = {
  rules: ['item-sync', 'dataloader-no-workers', 'launch-bound'],
  world: 'recorded',
  now_ns: 141e6,
  low_ns: 84e6,
  high_ns: 92e6,
  limit: 'data loading',
  limit_share: 0.713,
  next_rule: 'tiny-kernels',
  next_saving_ns: 3e6,
  next_saving_low_ns: 1e6,
  message: 'With “Reading values” fixed, the step takes 84.0–92.0 ms (now 141 ms as recorded).',
};
const traceRefs = [{ trace: 't1', rank: 0, name: 'worker0', span: '1' }];
const found = outlook.rules.map((rule) => outcome({ rule, title: rule, fingerprint: rule }));
const shown = (patch: Parameters<typeof runReport>[1]) =>
  renderInPage(
    <Advice
      report={runReport(found, patch)}
      trace="t1"
      name="worker0"
      traceRefs={traceRefs}
      choice={null}
    />,
    { open: 'none' },
  );

beforeEach(() => dismissals.forget());

describe('the outlook', () => {
  it('ends the findings, and leads to the simulation of its fixes', async () => {
    const { store } = shown({ outlook });
    const region = screen.getByRole('region', { name: 'Outlook' });
    expect(region.textContent?.replaceAll('\u00a0', ' ')).toContain(outlook.message);
    await userEvent.click(within(region).getByRole('link', { name: 'What if these were fixed' }));
    expect(store.current()).toMatchObject({
      view: 'whatif',
      worker: 'worker0',
      options: { fix: 'item-sync,dataloader-no-workers,launch-bound' },
    });
  });

  it('goes with a finding of it that is dismissed', () => {
    dismissals.dismiss(found[1] as (typeof found)[number]);
    shown({ outlook });
    expect(screen.queryByRole('region', { name: 'Outlook' })).toBeNull();
  });

  it('that is withheld says why, without a link', () => {
    shown({ outlook_withheld: 'the trace ends +5.0 % off its recorded end' });
    const region = screen.getByRole('region', { name: 'Outlook' });
    expect(region.textContent).toMatch(/is not predicted: the trace ends/);
    expect(within(region).queryByRole('link')).toBeNull();
  });
});

it('the outlook of a job is about its step', () => {
  const job = {
    step_ns: 37e6,
    gpu_count: null,
    gpu_source: '',
    gpu_hour_price: null,
    is_asked: false,
    total: null,
    withheld: '',
    method: '',
    outlook: {
      rules: ['straggler-rank'],
      low_ns: 29e6,
      high_ns: 33e6,
      message: 'With “One rank comes late” fixed, the job’s step takes 29.0–33.0 ms (now 37.0 ms).',
    },
  };
  renderInPage(<JobOutlook job={job} dismissed={[]} />);
  const text = screen.getByRole('region', { name: 'Outlook' }).textContent;
  expect(text?.replaceAll('\u00a0', ' ')).toBe(job.outlook.message);
});
