import { screen, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { describe, expect, it } from 'vitest';
import { renderInPage } from '../../../tests/render';
import type { KernelDetails } from '../../api/types.gen';
import { count, duration, instant } from '../../core/format';
import { operatorLocation } from '../../widgets/details/locations';
import { KernelReport } from './details';
import fixture from './fixtures/kernels-details.json';

const details = fixture as unknown as KernelDetails;

const sectionOf = (title: string): HTMLElement =>
  screen.getByRole('heading', { name: new RegExp(`^${title}`) }).closest('section') as HTMLElement;

describe('the details of a kernel', () => {
  it('show duration, launch delay and launch configurations', () => {
    renderInPage(<KernelReport details={details} device="GPU" />);
    expect(sectionOf('Duration').textContent).toContain(duration(details.durations.p95_ns));
    expect(sectionOf('Launch delay').textContent).toContain(duration(details.delays?.p50_ns ?? -1));
    const rows = within(sectionOf('Launch configurations')).getAllByRole('row').slice(1);
    expect(rows).toHaveLength(details.launches.length);
    const [launch] = details.launches;
    expect(rows[0]?.textContent).toContain(count(launch?.call_count ?? -1));
    expect(rows[0]?.textContent).not.toContain('[');
  });

  it('link to the launching operator and to the longest runs in the timeline', async () => {
    const { store } = renderInPage(<KernelReport details={details} device="GPU" />);
    const [operator] = details.operators;
    const [longest] = details.instances;
    if (!operator || !longest) throw new Error('the fixture has an operator and runs');
    await userEvent.click(within(sectionOf('Launched by')).getByText(operator.name));
    expect(store.current()).toMatchObject(operatorLocation(operator.name, operator.kind));
    const runs = sectionOf('Longest runs');
    await userEvent.click(within(runs).getAllByText(instant(longest.start_ns))[0] as HTMLElement);
    expect(store.current()).toMatchObject({ view: 'timeline', event: longest.event });
  });

  it('link to all launching stacks by device time', async () => {
    const frames = [{ text: 'train.py(12): step', line: null }];
    const stack = { frames, call_count: 2, time_ns: 900, device_ns: 900 };
    const changed = { ...details, stacks: [stack], stack_count: 1, stacks_missing: '' };
    const { store } = renderInPage(<KernelReport details={changed} device="GPU" />);
    await userEvent.click(screen.getByRole('link', { name: 'Show in the flame graph' }));
    expect(store.current()).toMatchObject({
      view: 'flame',
      options: { name: details.full_name, direction: 'callers', measure: 'device' },
    });
  });

  it('omit what was not recorded', () => {
    const bare = details.launches.map((launch) => ({ ...launch, grid: '' }));
    renderInPage(
      <KernelReport details={{ ...details, launches: bare, delays: null }} device="GPU" />,
    );
    expect(screen.queryByRole('heading', { name: /Launch configurations/ })).toBeNull();
    expect(screen.queryByRole('heading', { name: /Launch delay/ })).toBeNull();
  });
});
