import { screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { describe, expect, it } from 'vitest';
import { renderInPage } from '../../../tests/render';
import type { OperatorDetails } from '../../api/types.gen';
import { count, duration, instant } from '../../core/format';
import { kernelLocation, operatorLocation } from '../../widgets/details/locations';
import { OperatorReport, ReplayedOperator } from './details';
import fixture from './fixtures/operators-details.json';

const details = fixture as unknown as OperatorDetails;

const sectionOf = (title: string): HTMLElement =>
  screen.getByRole('heading', { name: new RegExp(`^${title}`) }).closest('section') as HTMLElement;

describe('the details of an operator', () => {
  it('show the distribution of call durations as a chart and as figures', () => {
    renderInPage(<OperatorReport details={details} device="GPU" />);
    const { host } = details;
    const picture = within(sectionOf('Host time per call')).getByRole('img');
    expect(picture.getAttribute('aria-label')).toContain(duration(host.max_ns));
    const figures = sectionOf('Host time per call').textContent ?? '';
    for (const ns of [host.mean_ns, host.p50_ns, host.p95_ns]) {
      expect(figures).toContain(duration(ns));
    }
    expect(figures).toContain(count(host.count));
  });

  it('link from the longest calls to the timeline', async () => {
    const { store } = renderInPage(<OperatorReport details={details} device="GPU" />);
    const [longest] = details.instances;
    if (!longest) throw new Error('the fixture has calls');
    const link = within(sectionOf('Longest calls')).getByText(instant(longest.start_ns));
    await userEvent.click(link);
    expect(store.current()).toMatchObject({ view: 'timeline', event: longest.event });
  });

  it('select a clicked step, and clear it on the second click', async () => {
    const { store } = renderInPage(<OperatorReport details={details} device="GPU" />);
    const bars = within(sectionOf('By step')).getAllByRole('button');
    expect(bars).toHaveLength(details.steps.length);
    await userEvent.click(bars[1] as HTMLElement);
    expect(store.current().step).toBe(details.steps[1]?.number);
    await userEvent.click(bars[1] as HTMLElement);
    expect(store.current().step).toBeNull();
  });

  it('link to callers, callees and launched kernels', async () => {
    const related = {
      name: 'aten::linear',
      kind: 'operator',
      call_count: 3,
      time_ns: 5000,
      share: 1,
    };
    const kernel = {
      name: 'gemm',
      full_name: 'void gemm<float>()',
      kind: 'kernel',
      event_count: 3,
      total_ns: 900,
      own_ns: 900,
      share: 1,
    };
    const changed = { ...details, callers: [related], kernels: [kernel], kernel_count: 1 };
    const { store } = renderInPage(<OperatorReport details={changed} device="GPU" />);
    await userEvent.click(within(sectionOf('Called by')).getByText('aten::linear'));
    expect(store.current()).toMatchObject(operatorLocation('aten::linear', 'operator'));
    await userEvent.click(within(sectionOf('Device work')).getByText('gemm'));
    expect(store.current()).toMatchObject(kernelLocation('void gemm<float>()'));
  });

  it('show stacks as source lines, or the code that records them', async () => {
    const frames = ['train.py(12): step', '<built-in method run>'].map((text, at) => ({
      text,
      line: at === 0 ? { path: 'train.py', line: 12, function: 'step' } : null,
    }));
    const stack = { frames, call_count: 2, time_ns: details.host.total_ns, device_ns: 0 };
    const { unmount, store } = renderInPage(
      <OperatorReport
        details={{ ...details, stacks: [stack], stack_count: 4, stacks_missing: '' }}
        device="GPU"
      />,
    );
    const section = sectionOf('Called from');
    expect(within(section).getByTitle(/train\.py:12/).textContent).toContain('step');
    expect(section.textContent).toContain('<built-in method run>');
    expect(section.textContent).toContain('100.0 % in 2 calls');
    expect(section.textContent).toContain('the 1 most expensive of 4');
    await userEvent.click(within(section).getByRole('link', { name: 'Show in the flame graph' }));
    expect(store.current()).toMatchObject({
      view: 'flame',
      options: { name: details.name, direction: 'callers' },
    });
    unmount();
    const missing = 'profile(with_stack=True)';
    renderInPage(
      <OperatorReport details={{ ...details, stacks: [], stacks_missing: missing }} device="GPU" />,
    );
    expect(sectionOf('Called from').textContent).toContain(missing);
  });
});

describe('the details of an operator of a replayed graph', () => {
  it('link to its kernels', async () => {
    const { store } = renderInPage(<ReplayedOperator name="aten::mm" />);
    await userEvent.click(screen.getByText('Kernels by launch'));
    const shown = { view: 'kernels', group: 'launch', search: 'aten::mm' };
    expect(store.current()).toMatchObject(shown);
  });
});
