import { screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { describe, expect, it, vi } from 'vitest';
import { renderInPage } from '../../../tests/render';
import { claim, mergedOutcome, outcome, runReport } from '../../../tests/samples';
import type { RunReport } from '../../api/types.gen';
import { Advice } from './advice';
import fixture from './fixture.json';

const report = fixture as unknown as RunReport;
const [worker] = report.workers;
const [device] = worker?.devices ?? [];
if (!worker || !device) throw new Error('the fixture has a worker with a device');
const one = [{ trace: 't1', rank: 0, name: 'worker0', span: '1' }];
const context = { traceRefs: one, choice: null };
const recording = { trace: worker.trace, name: worker.name, ...context };
const findings = report.outcomes.filter(
  ({ status, trace }) => status === 'found' && trace === worker.trace,
);
const here = { trace: 't1', name: 'worker0, span 1', ...context };

// It asks the server for what ran; the browser tests draw it.
vi.mock('./mini_timeline', () => ({ MiniTimeline: () => <p>around the worst</p> }));

describe('the advice of one trace', () => {
  it('shows the verdict and all findings as rows with their fixes', () => {
    renderInPage(<Advice report={report} {...recording} />, { open: 'none' });
    expect(screen.getByText(worker.verdict)).toBeTruthy();
    expect(findings.length).toBeGreaterThan(1);
    for (const finding of findings) {
      const name = new RegExp(`^(Critical|Warning|Info|Symptom) ?${finding.title}`);
      const row = screen.getByRole('button', { name, hidden: true });
      expect(row.textContent).toContain(finding.fix?.summary.replaceAll('`', ''));
      expect(row.getAttribute('aria-expanded')).toBe('false');
    }
  });

  it('expands a single finding, and none of several', () => {
    const { unmount } = renderInPage(<Advice report={runReport([outcome({})])} {...here} />);
    expect(screen.getAllByRole('button', { expanded: true })).toHaveLength(1);
    unmount();
    const two = runReport([outcome({ rule: 'a' }), outcome({ rule: 'b' })]);
    renderInPage(<Advice report={two} {...here} />);
    expect(screen.queryByRole('button', { expanded: true })).toBeNull();
  });

  it('shows message, evidence and fix of the expanded finding', () => {
    const finding = findings.find(({ fix, evidence }) => fix && evidence.length > 0);
    if (!finding) throw new Error('the fixture has a finding with a fix and evidence');
    renderInPage(<Advice report={report} {...recording} />, { open: finding.rule });
    expect(screen.getByText(finding.message)).toBeTruthy();
    for (const row of finding.evidence) {
      expect(screen.getByRole('rowheader', { name: row.label })).toBeTruthy();
    }
    expect(screen.getAllByText(finding.fix?.summary ?? '')).toHaveLength(2);
  });

  it('shows the fix before the source lines, the evidence and the estimate', () => {
    const fix = {
      summary: 'Do less.',
      code: 'x()',
      language: 'python',
      verify: '',
      caveats: ['No.'],
    };
    const locations = [{ path: 'train.py', line: 12, function: 'step' }];
    const evidence = [{ label: 'Reads', value: 4, unit: 'count' as const, link: null }];
    const events = [
      { name: 'k', track: 't', start_ns: 0, duration_ns: 1, detail: '', event: null },
    ];
    const finding = outcome({ fix, locations, evidence, events, claim: claim(1e6) });
    const { container } = renderInPage(<Advice report={runReport([finding])} {...here} />);
    const text = container.querySelector('.finding-body')?.textContent ?? '';
    const parts = ['Do less.', 'Source lines', 'Measured', 'Reads'];
    const all = [...parts, 'Worst events', 'How this was estimated', '1 caveat', 'Dismiss'];
    const positions = all.map((part) => text.indexOf(part));
    expect(positions).toEqual([...positions].sort((a, b) => a - b));
    expect(positions).not.toContain(-1);
  });

  it('keeps the expanded findings in the URL', async () => {
    const three = runReport(
      ['a', 'b', 'c'].map((rule) => outcome({ rule, title: `Fault ${rule}` })),
    );
    const { store } = renderInPage(<Advice report={three} {...here} />, { open: 'none' });
    expect(screen.queryByRole('button', { expanded: true })).toBeNull();
    const row = (name: string): HTMLElement =>
      screen.getByRole('button', { name: new RegExp(name) });
    await userEvent.click(row('Fault c'));
    expect(store.current().open).toBe('c');
    await userEvent.click(row('Fault a'));
    expect(store.current().open).toBe('c,a');
    expect(screen.getAllByRole('button', { expanded: true })).toHaveLength(2);
    await userEvent.click(row('Fault c'));
    await userEvent.click(row('Fault a'));
    expect(store.current().open).toBe('none');
  });

  it('moves between rows with the arrow keys, and expands with Enter and Space', async () => {
    const rules = ['a', 'b', 'c'];
    const three = runReport(rules.map((rule) => outcome({ rule, title: `Fault ${rule}` })));
    const { store } = renderInPage(<Advice report={three} {...here} />);
    screen.getByRole('button', { name: /Fault a/ }).focus();
    await userEvent.keyboard('{ArrowDown}{Enter}');
    expect(store.current().open).toBe('b');
    await userEvent.keyboard('{End} ');
    expect(store.current().open).toBe('b,c');
    await userEvent.keyboard('{ArrowDown}{Home}{ArrowDown}{ArrowUp}');
    expect(document.activeElement?.textContent).toContain('Fault a');
  });

  it('shows source line, confidence, effort and the range of the saving in a row', () => {
    const locations = [
      { path: '/home/me/train.py', line: 12, function: 'step' },
      { path: 'loss.py', line: 3, function: '' },
    ];
    const finding = outcome({ locations, confidence: 'high', effort: 'flag', claim: claim(2e7) });
    renderInPage(<Advice report={runReport([finding])} {...here} />, { open: 'none' });
    const row = screen.getByRole('button', { name: /^Info ?Reading single/ }).textContent;
    expect(row).toContain('train.py:12 +1');
    expect(row).toContain('15.0–20.0\u00a0% of the step15.0–20.0 ms');
    expect(row).toContain('high confidenceeffort: a line');
  });
});

describe('evidence', () => {
  it('links to the other views', async () => {
    const link = { view: 'kernels' as const, search: 'gemm', group: 'launch', step: 3 };
    const evidence = [{ label: 'Kernel', value: 'gemm', unit: 'code' as const, link }];
    const report = runReport([outcome({ evidence })]);
    const { store } = renderInPage(<Advice report={report} {...here} />);
    await userEvent.click(screen.getByRole('link', { name: 'kernels' }));
    expect(store.current()).toMatchObject({
      view: 'kernels',
      search: 'gemm',
      group: 'launch',
      step: 3,
    });
  });

  it('links to other ranks with the same finding', () => {
    const merged = [mergedOutcome({ traces: ['t1', 't2'] })];
    const traceRefs = [...one, { trace: 't2', rank: 1, name: 'worker1', span: '2' }];
    const report = { ...runReport([outcome({})]), merged };
    renderInPage(<Advice report={report} {...here} traceRefs={traceRefs} />);
    expect(screen.getByText(/Also found on/).textContent).toContain('worker1 span 2');
  });
});

it('renders code in a text as code and never as HTML', () => {
  const report = runReport([outcome({ why: 'Use `non_blocking=True` <b>now</b>.' })]);
  renderInPage(<Advice report={report} {...here} />);
  expect(screen.getByText('non_blocking=True').tagName).toBe('CODE');
  expect(screen.getByText(/<b>now<\/b>/)).toBeTruthy();
});

describe('savings', () => {
  it('are shown as ranges of share and time, and not at all for findings without one', () => {
    const report = runReport([
      outcome({ rule: 'a', title: 'With', claim: claim(59_300_000) }),
      outcome({ rule: 'b', title: 'Without' }),
    ]);
    renderInPage(<Advice report={report} {...here} />, { open: 'none' });
    expect(screen.getByRole('button', { name: /With / }).textContent).toContain(
      '44.5–59.3\u00a0% of the step44.5–59.3 ms',
    );
    expect(screen.getByRole('button', { name: /Without/ }).textContent).toContain('no saving');
  });

  it('are those of the unrecorded step where they decide, beside the recorded ones', () => {
    const measured = {
      ...claim(59_300_000),
      unrecorded_low_ns: 10e6,
      unrecorded_high_ns: 20e6,
      unrecorded_share: 0.25,
      decisive_step: 'unrecorded' as const,
      steps_differ: true,
    };
    const report = runReport([outcome({ rule: 'a', title: 'With', claim: measured })]);
    renderInPage(<Advice report={report} {...here} />, { open: 'a' });
    expect(screen.getByRole('button', { name: /With/ }).textContent).toContain(
      '12.5–25.0\u00a0% of the unrecorded step10.0–20.0 ms',
    );
    expect(screen.getByText(/as recorded 44.5–59.3 ms/)).toBeTruthy();
  });

  it('are counted once: related symptoms are listed separately, with the finding that counts them', () => {
    const counted = { ...claim(0), high_ns: 2e6, counted_under: ['a'] };
    const report = runReport([
      outcome({ rule: 'a', title: 'Owner', claim: claim(5e6), severity: 'warning' }),
      outcome({ rule: 'c', title: 'Given away', claim: counted, severity: 'critical' }),
    ]);
    renderInPage(<Advice report={report} {...here} />, { open: 'none' });
    const first = screen.getByRole('region', { name: 'What to fix first' });
    expect(within(first).getAllByRole('button')).toHaveLength(1);
    const group = screen.getByText('Related symptoms').closest('details') as HTMLDetailsElement;
    expect(group.open).toBe(false);
    const related = within(group).getByRole('button', { name: /Given away/, hidden: true });
    expect(related.textContent).toContain('its 2.00 ms are counted under “Owner”');
    expect(related.textContent).not.toMatch(/up to|Critical/);
  });
});

describe('doubtful outcomes', () => {
  const doubts = ['the file ends in the middle'];

  it('show the damage, collapsed and expanded', () => {
    const report = runReport([
      outcome({ rule: 'a', title: 'Unsure', doubts }),
      outcome({ rule: 'b', title: 'Sure' }),
    ]);
    renderInPage(<Advice report={report} {...here} />, { open: 'a' });
    const unsure = screen.getByRole('button', { name: /Unsure/ });
    expect(unsure.textContent).toContain('doubtful');
    expect(screen.getByRole('button', { name: /Sure/ }).textContent).not.toContain('doubtful');
    const text = unsure.closest('li')?.querySelector('.doubts');
    expect(text?.textContent).toContain('The file ends in the middle.');
  });

  it('are inconclusive, and checks that passed on a damaged trace are listed separately', () => {
    const report = runReport([
      outcome({ rule: 'unsure', status: 'passed', title: 'Unsure', doubts }),
      outcome({ rule: 'b', status: 'passed', title: 'Sure' }),
    ]);
    renderInPage(<Advice report={report} {...here} />);
    const splitDismissed = screen.getByText('Passed, but doubtful').closest('details');
    expect(splitDismissed?.textContent).toContain('The file ends in the middle.');
    expect(splitDismissed?.textContent).toContain('unsure');
    expect(screen.getByText('Passed').closest('details')?.textContent).not.toContain('unsure');
  });

  it('expand the list that holds the check of a link', () => {
    const report = runReport([
      outcome({}),
      outcome({ rule: 'p', status: 'passed', title: 'Fine' }),
    ]);
    renderInPage(<Advice report={report} {...here} />, { open: 'p' });
    expect(screen.getByText('Passed').closest('details')?.open).toBe(true);
  });
});

describe('a trace without findings', () => {
  it('collapses the other checks and shows how to record what is missing', () => {
    const report = runReport([
      outcome({ rule: 'x', title: 'Found' }),
      outcome({ rule: 'p', status: 'passed', title: 'Fine' }),
      outcome({
        rule: 'n',
        status: 'cannot-tell',
        title: 'Blind',
        reason: 'No shapes.',
        remedy: 'profile(record_shapes=True)',
      }),
      outcome({ rule: 'f', status: 'failed', title: 'Broken', reason: 'KeyError' }),
    ]);
    renderInPage(<Advice report={report} {...here} />);
    const blind = screen.getByText('Inconclusive').closest('details');
    expect(blind?.open).toBe(false);
    expect(blind?.textContent).toContain('No shapes.');
    expect(blind?.textContent).toContain('profile(record_shapes=True)');
    const failed = screen.getByRole('region', { name: 'Checks that failed' });
    expect(within(failed).getByText('f')).toBeTruthy();
  });

  it.each([
    ['healthy', [device], 'No problems found'],
    ['healthy', [], 'No problems found'],
    ['cannot-tell', [], 'CPU events only'],
    ['cannot-tell', [device], 'checks are inconclusive'],
    ['not-applicable', [device], 'No check applies'],
  ] as const)('of a trace that is %s has its message', (state, devices, words) => {
    const standing = { state, message: 'So says the server.' };
    const report = runReport([outcome({ status: 'passed' })], { standing, devices: [...devices] });
    renderInPage(<Advice report={report} {...here} />);
    const heading = screen.getByRole('heading', { name: new RegExp(words) });
    expect(heading.closest('section')?.textContent).toContain('So says the server.');
  });

  it('expands the other checks, as nothing else is shown', () => {
    const blind = outcome({ status: 'cannot-tell', reason: 'No shapes.' });
    const report = runReport(
      [blind, outcome({ rule: 'f', status: 'failed', reason: 'KeyError' })],
      { devices: [device] },
    );
    renderInPage(<Advice report={report} {...here} />);
    expect(screen.getByText('Inconclusive').closest('details')?.open).toBe(true);
  });
});

/** A part of the step without a saving. */
const line = {
  category: 'kernel',
  label: 'Kernel',
  rules: [],
  meaning: '',
  recoverable_low_ns: 0,
  recoverable_high_ns: 0,
};

it('without a device lists the checks, where to look next, and how to record a device', async () => {
  const remedy = 'torch.profiler.profile(activities=[ProfilerActivity.CUDA])';
  const blind = { status: 'cannot-tell', reason: 'No device.', remedy } as const;
  const report = runReport(
    [
      outcome({ rule: 'p', status: 'passed', title: 'Few steps' }),
      outcome({ rule: 'n', ...blind }),
      outcome({ rule: 'm', ...blind }),
    ],
    {
      step: { ...worker.step, mean_ns: 1e8 },
      standing: { state: 'cannot-tell', message: 'No rule found anything.' },
      budget: [
        { ...line, category: 'other', label: 'Other', time_ns: 2e7, share: 0.2 },
        { ...line, category: 'cpu', label: 'CPU', time_ns: 8e7, share: 0.8 },
      ],
    },
  );
  const { store } = renderInPage(<Advice report={report} {...here} />);
  const card = screen.getByRole('heading', { name: /CPU events only/ }).closest('section');
  if (!card) throw new Error('the heading stands in a section');
  expect(card.textContent).toContain('No rule found anything.');
  expect(card.textContent).toContain(remedy);
  const parts = within(card).getAllByRole('listitem');
  expect(parts.map((part) => part.textContent)).toEqual([
    expect.stringMatching(/^CPU80.0 ms 80.0 %/),
    expect.stringMatching(/^Other20.0 ms 20.0 %/),
  ]);
  await userEvent.click(within(card).getByRole('link', { name: 'Top operators' }));
  expect(store.current().view).toBe('operators');
});

it('shows an empty state for a trace without advice', () => {
  renderInPage(<Advice report={runReport([])} {...context} trace="t9" name="gone, span 1" />);
  expect(screen.getByRole('heading', { name: /No advice on gone/ })).toBeTruthy();
});

describe('a symptom that costs nothing', () => {
  it('is listed as ruled out, with its numbers', () => {
    const evidence = [{ label: 'Reads', value: 4, unit: 'count' as const, link: null }];
    const message = 'The host waits for 28 % of the time, and the GPU works meanwhile.';
    const report = runReport([
      outcome({ rule: 'x', title: 'Found' }),
      outcome({ rule: 'r', status: 'rejected', title: 'Reading drains', message, evidence }),
    ]);
    renderInPage(<Advice report={report} {...here} />);
    const ruledOut = screen.getByText('Ruled out').closest('details');
    expect(ruledOut?.textContent).toContain(`Reading drains? ${message}`);
    expect(ruledOut?.textContent).toContain('Reads4');
  });
});

describe('a suppressed finding', () => {
  it('shows who suppressed it and why', () => {
    const suppressed = {
      status: 'suppressed',
      message: 'It costs 2 ms.',
      reason: 'Accepted.',
      suppressed_by: 'recording',
    } as const;
    renderInPage(<Advice report={runReport([outcome(suppressed)])} {...here} />);
    const list = screen.getByText('Suppressed').closest('details');
    expect(list?.textContent).toContain('It costs 2 ms. Suppressed by the program: Accepted.');
  });
});

describe('an expanded finding', () => {
  it('shows tables, source lines, effort and risk', () => {
    const tables = [
      {
        label: 'Kernels',
        columns: [
          { label: 'Kernel', unit: 'code' as const },
          { label: 'Time', unit: 'ns' as const },
        ],
        rows: [
          { cells: ['gemm', 2_000_000], link: { view: 'kernels' as const, search: 'gemm' } },
          { cells: ['other', null], link: null },
        ],
      },
    ];
    const locations = [{ path: 'train.py', line: 12, function: 'step' }];
    const report = runReport([outcome({ tables, locations, effort: 'flag', risk: 'numerics' })]);
    renderInPage(<Advice report={report} {...here} />);
    const table = screen.getByRole('heading', { name: 'Kernels' }).closest('section');
    expect(table?.textContent).toContain('gemm2.00 ms');
    expect(table?.textContent).toContain('other–');
    const line = screen.getByTitle(/train.py:12/);
    expect(line.textContent).toContain('step');
    expect(screen.getByText('an argument or a line')).toBeTruthy();
    expect(screen.getByText(/results change slightly/)).toBeTruthy();
  });
});

describe('the time budget', () => {
  const budget = [
    { ...line, time_ns: 6e7, share: 0.6 },
    {
      ...line,
      category: 'dataloader',
      label: 'Data loading',
      time_ns: 4e7,
      share: 0.4,
      recoverable_low_ns: 1e7,
      recoverable_high_ns: 3e7,
      rules: ['dataloader-no-workers'],
    },
  ];

  it('shows the potential saving of each category, by rule', () => {
    const saving = { low_ns: 1e7, high_ns: 3e7, low_share: 0.1, high_share: 0.3 };
    renderInPage(<Advice report={runReport([outcome({})], { budget, saving })} {...here} />);
    expect(
      screen.getByText(/Potential saving: 10.0–30.0 % of the step \(10.0–30.0 ms\)/),
    ).toBeTruthy();
    const row = screen.getByRole('rowheader', { name: 'Data loading' }).closest('tr');
    expect(row?.textContent).toContain('40.0 %');
    expect(row?.textContent).toContain('dataloader-no-workers');
  });
});

describe('a run of several ranks', () => {
  it('lists findings on the whole run first', () => {
    const late = outcome({
      rule: 'late',
      title: 'Rank 1 is late',
      trace: '',
      worker: '',
      span: '',
    });
    const two = runReport([late, outcome({ rule: 'own', title: 'Own' })]);
    const traceRefs = [...one, { trace: 't2', rank: 1, name: 'worker1', span: '1' }];
    const report = { ...two, verdict: 'Two traces.' };
    renderInPage(<Advice report={report} {...here} traceRefs={traceRefs} />, { open: 'none' });
    expect(screen.getByText('Two traces.')).toBeTruthy();
    const whole = screen.getByRole('region', { name: 'Whole run' });
    expect(within(whole).getByRole('button', { name: /Rank 1 is late/ })).toBeTruthy();
    const first = screen.getByRole('region', { name: 'What to fix first' });
    expect(within(first).queryByRole('button', { name: /Rank 1 is late/ })).toBeNull();
  });
});
