import { screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { describe, expect, it, vi } from 'vitest';
import { renderInPage } from '../../../tests/render';
import { health, outcome, runReport } from '../../../tests/samples';
import { runOf, spanOf } from '../../../tests/states';
import type { RunReport, RunState, Span, WorkerReport } from '../../api/types.gen';
import { count } from '../../core/format';
import * as files from '../../host/download';
import type { Selection } from '../../state/selection';
import { Files } from './files';
import fixture from './fixture.json';
import { Health } from './health';

const recorded = fixture as unknown as RunReport;
const [damaged] = recorded.workers;
if (!damaged) throw new Error('the fixture has a worker');

/** The page shows the first of some files. */
function selectionOf(...spans: Span[]): Selection {
  const run = runOf('run', 'ready', spans);
  const [worker] = run.workers;
  const [span] = spans;
  if (!worker || !span) throw new Error('a run has a file');
  return { run, worker, span };
}

const show = (worker: Partial<WorkerReport>, ...outcomes: Parameters<typeof outcome>[0][]) =>
  renderInPage(
    <Health
      report={runReport(outcomes.map(outcome), worker)}
      selection={selectionOf(spanOf({ file_bytes: 231_210 }))}
    />,
  );

const fact = (label: string): string | null | undefined =>
  screen.getByText(label, { selector: 'dt' }).parentElement?.querySelector('dd')?.textContent;

describe('a damaged file', () => {
  const shown = () =>
    renderInPage(
      <Health report={recorded} selection={selectionOf(spanOf({ trace: damaged.trace }))} />,
    );

  it('shows damage first, with positions and handling', () => {
    shown();
    expect(screen.getByRole('heading', { level: 2, name: /cut off/ })).toBeTruthy();
    expect(fact('Read')).toMatch(/^up to byte [\d,]+$/);
    const regions = screen.getAllByRole('region').map((region) => region.ariaLabel ?? region.id);
    expect(regions).toHaveLength(4);
    const damage = screen.getByRole('region', { name: 'Damage' });
    for (const item of damaged.health.filter((example) => example.nature === 'damage')) {
      expect(within(damage).getByText(new RegExp(item.action.slice(0, 30)))).toBeTruthy();
      for (const example of item.examples) {
        expect(within(damage).getAllByText(count(example.offset_bytes)).length).toBeGreaterThan(0);
      }
    }
    expect(within(damage).getAllByText(/"of" mine/)).toHaveLength(3);
  });

  it('links to doubtful views and checks', async () => {
    const { store } = shown();
    const damage = screen.getByRole('region', { name: 'Damage' });
    const [checks] = within(damage).getAllByText(/^and \d+ checks$/);
    const list = checks?.closest('details') as HTMLElement;
    await userEvent.click(within(list).getByRole('link', { name: 'Long stalls of the device' }));
    expect(store.current()).toMatchObject({ view: 'advice', open: 'gpu-idle-gap' });
    const [figure] = within(damage).getAllByRole('link', { name: 'kernels' });
    await userEvent.click(figure as HTMLElement);
    expect(store.current().view).toBe('kernels');
  });

  it('lists what to record next time, each line of code once', () => {
    shown();
    const section = screen.getByRole('region', { name: 'Record next time' });
    expect(section.querySelector('pre')?.textContent).toBe(damaged.profile_call);
    expect(within(section).getByRole('button', { name: 'Copy' })).toBeTruthy();
    const codes = within(section)
      .getAllByRole('term')
      .map((term) => term.textContent);
    expect(codes).toEqual([...new Set(damaged.record_next.map(({ code }) => code))]);
    for (const { why } of damaged.record_next) {
      expect(section.textContent).toContain(why.replaceAll('`', ''));
    }
  });
});

describe('a healthy file', () => {
  it('is labelled healthy and shows its facts only', () => {
    show({ inflated_bytes: 4_453_943, events: 11_510 });
    expect(screen.getByRole('heading', { name: 'This file is healthy' })).toBeTruthy();
    expect(
      screen.getByText('11,510 events were read from 4.25 MiB of JSON: no damage, loss or repair.'),
    ).toBeTruthy();
    expect([fact('On disk'), fact('JSON'), fact('Read'), fact('Lost')]).toEqual([
      '226 KiB',
      '4.25 MiB',
      'completely',
      'nothing',
    ]);
    expect(screen.getAllByRole('region')).toHaveLength(1);
  });

  it('omits unknown facts', () => {
    show({ inflated_bytes: 0, producer: '' });
    expect([fact('JSON'), fact('Written by')]).toEqual(['unknown', 'unknown']);
  });
});

describe('an item', () => {
  it('shows shown and total counts once', () => {
    show({
      health: [
        health({ kind: 'a', count: 5, of_count: 20, message: '5 of 20 events are odd' }),
        health({ kind: 'b', count: 40, message: '40 events were left out', lost_bytes: 18_900 }),
        health({ kind: 'c', count: 3, message: 'values are missing' }),
      ],
    });
    const amounts = screen
      .getAllByRole('listitem')
      .map((row) => row.querySelector('.item-amount')?.textContent);
    expect(amounts).toEqual(['25.0 %5 of 20', '18.5 KiB lost', '3 times']);
  });

  it('shows an excerpt as text with hidden characters escaped', () => {
    const examples = [{ offset_bytes: 7, text: '<b>x</b>\u202E', start_ns: 1500 }];
    show({ health: [health({ examples })] });
    expect(screen.getByText('<b>x</b>\\u{202e}').tagName).toBe('TD');
    expect(screen.getByText('0.002 ms')).toBeTruthy();
  });

  it('lists what it makes unusable', () => {
    const item = health({ effect: 'withheld', affects: ['item-sync', 'memory'] });
    show({ health: [item] }, { rule: 'item-sync', title: 'Reading values', status: 'passed' });
    const words = screen.getByText(/Unusable/).parentElement as HTMLElement;
    expect(words.textContent).toBe('Unusable: memory');
    expect(screen.getByText('and 1 check')).toBeTruthy();
  });
});

it('lists all files of the run', async () => {
  const spans = [
    spanOf(),
    spanOf({ trace: 't2', damage: 'critical', file: 'other.json' }),
    spanOf({ trace: 't3', state: 'cancelled', events: null }),
  ];
  const { store } = renderInPage(
    <Health report={runReport([])} selection={selectionOf(...spans)} />,
  );
  const table = screen.getByRole('region', { name: 'Files of this run' });
  expect(table.textContent).toContain('3 files, 1 of them damaged');
  const rows = within(table).getAllByRole('row').slice(1);
  expect(rows.map((row) => row.getAttribute('aria-current'))).toEqual(['true', null, null]);
  expect(rows[1]?.textContent).toContain('Critical');
  expect(rows[2]?.textContent).toContain('cancelled');
  await userEvent.click(within(table).getByRole('link', { name: 'rank1, span 1' }));
  expect(store.current()).toMatchObject({ worker: 'rank1', span: '1' });
});

it('shows an empty state without health data', () => {
  renderInPage(
    <Health report={runReport([])} selection={selectionOf(spanOf({ trace: 'gone' }))} />,
  );
  expect(screen.getByRole('heading', { name: /No health data on rank0/ })).toBeTruthy();
});

it('is exported as CSV, and as JSON in full', async () => {
  const saved = vi.spyOn(files, 'download').mockImplementation(() => undefined);
  const item = health({ message: '=cmd()', affects: ['a', 'b'], of_count: 9 });
  show({ health: [item], profile_call: 'profile()' });
  await userEvent.click(screen.getByRole('button', { name: 'CSV' }));
  expect(saved).toHaveBeenCalledWith(
    'run_rank0_1_health.csv',
    'text/csv',
    'kind,nature,severity,count,of,lost (bytes),message,action,remedy,effect,affects,first at (bytes)\r\n' +
      "invalid-escape,damage,info,1,9,0,'=cmd(),,,none,a; b,\r\n",
  );
  await userEvent.click(screen.getByRole('button', { name: 'JSON' }));
  const [name, , text] = saved.mock.lastCall ?? [];
  expect(name).toBe('run_rank0_1_health.json');
  expect(JSON.parse(text ?? '')).toMatchObject({
    file: 'worker0.1.pt.trace.json',
    file_bytes: 231_210,
    health: [item],
    profile_call: 'profile()',
  });
});

it('lists damaged files first in a large run, with a link to all of them', () => {
  const many = Array.from({ length: 1024 }, (_, rank) => ({
    name: `rank${rank}`,
    rank,
    host: null,
    spans: [spanOf({ trace: `t${rank}`, damage: rank === 900 ? ('warning' as const) : null })],
  }));
  const run: RunState = { ...runOf('big', 'ready', []), workers: many };
  renderInPage(<Files run={run} trace="t7" />);
  const rows = screen.getAllByRole('row').slice(1);
  expect(rows).toHaveLength(50);
  expect(rows.slice(0, 3).map((row) => row.querySelector('th')?.textContent)).toEqual([
    'rank7, span 1',
    'rank900, span 1',
    'rank0, span 1',
  ]);
  expect(screen.getByText(/50 of 1,024/)).toBeTruthy();
});
