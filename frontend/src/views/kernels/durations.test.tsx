import { screen } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { describe, expect, it } from 'vitest';
import { renderInPage } from '../../../tests/render';
import { fakeApi } from '../../../tests/views';
import type { DurationClass, KernelDurations } from '../../api/types.gen';
import { Durations, DurationsChart, launchSentence, rangeOf, searchOf, toggled } from './durations';
import fixture from './fixtures/kernels-durations.json';

const classOf = (from_ns: number, below_ns: number | null, kernel_count = 1): DurationClass => ({
  from_ns,
  below_ns,
  kernel_count,
  total_ns: kernel_count * 3_000,
});
const DURATIONS: KernelDurations = {
  schema: 1,
  kernel_count: 4,
  total_ns: 12_000,
  classes: [
    classOf(0, 1_000, 0),
    classOf(2_000, 5_000, 3),
    classOf(500_000, 1_000_000),
    classOf(10_000_000, null, 0),
  ],
  launch_ns: 4_000,
  shorter_count: 3,
  shorter_ns: 6_000,
};

describe('the durations of kernels', () => {
  const api = fakeApi({ 'kernels/durations': fixture });

  it('name a class by its edges, with one unit where it is the same', () => {
    const names = DURATIONS.classes.map(rangeOf);
    expect(names).toEqual(['< 1 µs', '2–5 µs', '500 µs–1 ms', '≥ 10 ms']);
  });

  it('say how much time is in kernels shorter than a launch', () => {
    expect(launchSentence(DURATIONS)).toBe(
      '75.0 % of 4 kernels, with 50.0 % of kernel time, take less than a launch call (median 4.00 µs as recorded).',
    );
    expect(launchSentence({ ...DURATIONS, launch_ns: null })).toContain('No call');
  });

  it('search for kernels whose durations reach into a class', () => {
    const [first, second, , last] = DURATIONS.classes as [
      DurationClass,
      DurationClass,
      DurationClass,
      DurationClass,
    ];
    expect([first, second, last].map(searchOf)).toEqual([
      'min:<1us',
      'max:>=2us min:<5us',
      'max:>=10ms',
    ]);
    expect(toggled('', second)).toBe('max:>=2us min:<5us');
    expect(toggled('gemm max:>=10ms', second)).toBe('gemm max:>=2us min:<5us');
    expect(toggled('gemm max:>=2us min:<5us', second)).toBe('gemm');
  });

  it('filter the table by a click, and clear the filter by a second', async () => {
    const { store } = renderInPage(<DurationsChart durations={DURATIONS} />, { search: 'gemm' });
    const button = screen.getByRole('button', { name: /^2–5 µs: 3 kernels \(75\.0 %\), 9\.00 µs/ });
    await userEvent.click(button);
    expect(store.current().search).toBe('gemm max:>=2us min:<5us');
    expect(button.getAttribute('aria-pressed')).toBe('true');
    await userEvent.click(button);
    expect(store.current().search).toBe('gemm');
    expect(screen.getByRole<HTMLButtonElement>('button', { name: /^< 1 µs/ }).disabled).toBe(true);
  });

  it('are folded to the sentence', async () => {
    renderInPage(<Durations trace="a" />);
    const sentence = await screen.findByText(launchSentence(fixture as KernelDurations));
    expect(sentence.closest('details')?.open).toBe(false);
  });

  it('are not shown without kernels', async () => {
    api.responses = { 'kernels/durations': { ...fixture, kernel_count: 0, classes: [] } };
    const { container } = renderInPage(<Durations trace="a" />);
    await new Promise((done) => setTimeout(done, 50));
    expect(api.requests).toHaveLength(1);
    expect(container.textContent).toBe('');
  });
});
