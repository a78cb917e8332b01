import { screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { renderInPage } from '../../../tests/render';
import { claim, outcome, runReport } from '../../../tests/samples';
import { clearToasts, Toasts } from '../../widgets/toast';
import { Advice } from './advice';
import { dismissals, keyOf } from './dismissed';
import { isShown, splitDismissed, topicsOf } from './outcomes';

vi.mock('./mini_timeline', () => ({ MiniTimeline: () => null }));

const here = { trace: 't1', name: 'worker0, span 1', traceRefs: [], choice: null };
const first = outcome({
  rule: 'first',
  title: 'The first fault',
  category: 'input pipeline',
  fingerprint: 'f1',
  claim: claim(5e6),
});
const second = outcome({
  rule: 'second',
  title: 'The second fault',
  category: 'host',
  fingerprint: 'f2',
  claim: claim(5e6),
});
const report = runReport([first, second]);

beforeEach(() => {
  localStorage.clear();
  dismissals.forget();
  clearToasts();
});

describe('a dismissed finding', () => {
  it('is counted, listed separately, and restored by Undo', async () => {
    renderInPage(
      <>
        <Advice report={report} {...here} />
        <Toasts />
      </>,
      { open: 'first' },
    );
    await userEvent.click(screen.getByRole('button', { name: 'Dismiss' }));
    expect(screen.getByText('1 dismissed finding below')).toBeTruthy();
    const fold = screen.getByText('dismissed in this browser; the trace still has them')
      .parentElement?.parentElement as HTMLElement;
    expect(within(fold).getByText('The first fault')).toBeTruthy();
    expect(dismissals.current()).toEqual([keyOf(first)]);
    await userEvent.click(screen.getByRole('button', { name: 'Undo' }));
    expect(dismissals.current()).toEqual([]);
    expect(screen.queryByText('1 dismissed finding below')).toBeNull();
  });

  it('stays dismissed in this browser, in all traces of the same code', () => {
    dismissals.dismiss(first);
    dismissals.forget();
    const elsewhere = { ...first, trace: 't9', worker: 'another' };
    expect(splitDismissed([elsewhere, second], dismissals.current())).toEqual([
      [second],
      [elsewhere],
    ]);
  });

  it('is dismissed even if the stored value is invalid', () => {
    localStorage.setItem('stepscope.dismissed', '{"no": 1}');
    dismissals.forget();
    expect(dismissals.current()).toEqual([]);
  });
});

describe('filters', () => {
  it('show the findings of a topic and count the hidden ones', async () => {
    const { store } = renderInPage(<Advice report={report} {...here} />);
    await userEvent.selectOptions(screen.getByRole('combobox', { name: 'Topic' }), 'host');
    expect(store.current().options).toEqual({ topic: 'host' });
    expect(screen.queryByText('The first fault')).toBeNull();
    expect(screen.getByText(/1 finding filtered out/)).toBeTruthy();
    await userEvent.click(screen.getByRole('button', { name: 'Show all' }));
    expect(store.current().options).toEqual({});
    expect(screen.getByText('The first fault')).toBeTruthy();
  });

  it('select the rules of a category of the budget', () => {
    const [worker] = report.workers;
    if (!worker) throw new Error('there is one');
    const line = {
      category: 'dataloader',
      label: 'DataLoader',
      time_ns: 5,
      share: 0.5,
      recoverable_low_ns: 1,
      recoverable_high_ns: 2,
      rules: ['first'],
      meaning: '',
    };
    const of = { ...worker, budget: [line] };
    const filters = { part: 'dataloader', topic: null };
    expect([first, second].map((outcome) => isShown(outcome, filters, of))).toEqual([true, false]);
    expect(isShown(first, { part: 'kernel', topic: null }, of)).toBe(false);
  });

  it('count the topics, the most frequent first', () => {
    expect(topicsOf([second, first, { ...first, rule: 'third' }])).toEqual([
      { name: 'input pipeline', count: 2 },
      { name: 'host', count: 1 },
    ]);
  });
});
