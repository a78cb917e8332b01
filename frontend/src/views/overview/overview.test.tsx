import { screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { renderInPage } from '../../../tests/render';
import { firstOf, runOf, spanOf } from '../../../tests/states';
import { api } from '../../api/client';
import type { DeviceReport, Overview } from '../../api/types.gen';
import { duration, share } from '../../core/format';
import * as files from '../../host/download';
import { kernelLocation } from '../../widgets/details/locations';
import * as png from '../../widgets/png';
import fixture from './fixture.json';
import { OverviewReport } from './overview';
import Page from './page';

// A canvas is drawn in the browser tests; here the numbers count.
vi.mock('../../charts/step_columns', () => ({ default: () => <div data-testid="columns" /> }));

const overview = fixture as unknown as Overview;
const [device] = overview.devices;
if (!device) throw new Error('the fixture has a device');

afterEach(() => vi.restoreAllMocks());

describe('the overview of a trace', () => {
  it('shows the verdict and the mean step by category', () => {
    renderInPage(<OverviewReport run="resnet50" overview={overview} />);
    expect(screen.getByText(overview.verdict)).toBeTruthy();
    const parts = screen.getByRole('list', { name: 'Parts of the mean step' });
    for (const category of overview.categories) {
      const ns = overview.step.breakdown_ns[category.id] ?? 0;
      const label = within(parts).queryByText(category.label);
      expect(label !== null).toBe(ns > 0);
      if (ns > 0) expect(label?.parentElement?.textContent).toContain(duration(ns));
    }
  });

  it('lists all steps in the table, and keeps the selected one in the URL', async () => {
    const { store } = renderInPage(<OverviewReport run="resnet50" overview={overview} />);
    const table = screen.getByText('As a table').closest('details') as HTMLElement;
    const names = overview.steps.map((step) => step.name);
    expect(
      within(table)
        .getAllByRole('button')
        .map((button) => button.textContent),
    ).toEqual(names);
    await userEvent.click(within(table).getByRole('button', { name: names[1] ?? '' }));
    expect(store.current().step).toBe(overview.steps[1]?.number);
  });

  it('is filtered to a step, and named after it', () => {
    const step = { ...overview.step, count: 1, mean_ns: 51_718_151 };
    const verdict = 'Step 14 takes 51.7 ms, 0.6 % more than the mean step.';
    renderInPage(
      <OverviewReport run="resnet50" overview={{ ...overview, step, verdict }} filter="step 14" />,
      { step: 14 },
    );
    expect(screen.getByText(verdict)).toBeTruthy();
    expect(screen.getByRole('heading', { name: 'Selected step' })).toBeTruthy();
    expect(screen.getByRole('list', { name: 'Parts of the selected step' })).toBeTruthy();
    expect(screen.getAllByRole('row')).toHaveLength(overview.steps.length + 1);
  });

  it('requests the figures of the step in the URL', async () => {
    const [first] = overview.steps;
    if (!first) throw new Error('the fixture has steps');
    vi.spyOn(api, 'overview').mockResolvedValue(overview);
    const get = vi.spyOn(api, 'get').mockResolvedValue({ ...overview, verdict: 'Of one step.' });
    const run = runOf('r', 'ready', [spanOf()]);
    renderInPage(<Page selection={firstOf(run)} />, { step: first.number });
    await waitFor(() => expect(screen.getByText('Of one step.')).toBeTruthy());
    expect(get.mock.lastCall?.[1]).toEqual({
      trace: 't1',
      start_ns: first.host_start_ns,
      end_ns: first.host_end_ns,
    });
  });

  it('shows the selected time range', () => {
    const time = { startNs: 1_000_000, endNs: 3_500_000 };
    renderInPage(<OverviewReport run="resnet50" overview={overview} />, { time });
    expect(screen.getByText(/selected, from/).textContent).toBe(
      '2.50 ms selected, from 1.000 ms to 3.500 ms.',
    );
    expect(screen.queryByText(/All views/)).toBeNull();
  });

  it('links from each short list to its view', async () => {
    const { store } = renderInPage(<OverviewReport run="resnet50" overview={overview} />);
    const [kernel] = overview.top_kernels;
    const [gap] = overview.longest_gaps;
    if (!kernel || !gap) throw new Error('the fixture has kernels and gaps');
    const lists = (title: string): HTMLElement =>
      screen.getByRole('heading', { name: title }).closest('section') as HTMLElement;
    const first = (title: string): HTMLElement =>
      within(within(lists(title)).getByRole('list')).getAllByRole('link')[0] as HTMLElement;
    await userEvent.click(first('Top kernels'));
    expect(store.current()).toMatchObject(kernelLocation(kernel.full_name));
    await userEvent.click(first('Longest gaps'));
    expect(store.current()).toMatchObject({ view: 'timeline', event: gap.event });
  });
});

describe('the export', () => {
  const exported = async (choice: string): Promise<[string, string]> => {
    const saved = vi.spyOn(files, 'download').mockImplementation(() => undefined);
    renderInPage(<OverviewReport run="resnet50" overview={overview} />);
    await userEvent.click(screen.getByText('Export'));
    await userEvent.click(screen.getByRole('button', { name: choice }));
    const [name = '', , body = ''] = saved.mock.calls[0] ?? [];
    return [name, String(body)];
  };

  it('has all steps with their categories, which sum to the step', async () => {
    const [name, body] = await exported('CSV');
    const { worker, span, steps, categories } = overview;
    expect(name).toBe(`resnet50_${worker}_${span}_steps.csv`);
    const [header = '', ...rows] = body.trim().split('\r\n');
    expect(header).toContain('step,name,start (ns),duration (ns),host start (ns),host end (ns),');
    expect(rows).toHaveLength(steps.length);
    for (const row of rows) {
      const [, , , whole, , , ...parts] = row.split(',').map(Number);
      expect(parts).toHaveLength(categories.length);
      expect(parts.reduce((sum, part) => sum + part, 0)).toBe(whole);
    }
  });

  it('has the trace’s name and its mean step in JSON', async () => {
    const [name, body] = await exported('JSON');
    expect(name).toMatch(/_steps\.json$/);
    const { run, worker, verdict, mean_step, rows } = JSON.parse(body);
    expect([run, worker, verdict]).toEqual(['resnet50', overview.worker, overview.verdict]);
    expect(mean_step).toEqual(overview.step);
    expect(rows[0]).toMatchObject({
      number: overview.steps[0]?.number,
      duration: overview.steps[0]?.duration_ns,
    });
  });

  it('has an image of each chart', async () => {
    const painted = vi.spyOn(png, 'savePng').mockResolvedValue();
    await exported('PNG: Steps');
    expect(screen.getByRole('button', { name: 'PNG: Mean step' })).toBeTruthy();
    expect(screen.getByRole('button', { name: 'PNG: Devices' })).toBeTruthy();
    await vi.waitFor(() => expect(painted).toHaveBeenCalledTimes(1));
    const [picture, file] = painted.mock.calls[0] ?? [];
    expect(file).toBe(`resnet50_${overview.worker}_${overview.span}_step-by-step.png`);
    expect(picture?.element.textContent).toBe('');
    expect(picture?.legend?.map(({ label }) => label)).toContain(overview.categories[0]?.label);
  });

  it('has only an image without steps', async () => {
    const step = { ...overview.step, count: 0 };
    const none = { ...overview, devices: [], steps: [], step };
    renderInPage(<OverviewReport run="resnet50" overview={none} />);
    await userEvent.click(screen.getByText('Export'));
    expect(screen.getByRole('button', { name: 'PNG of the chart' })).toBeTruthy();
    expect(screen.queryByRole('button', { name: 'CSV' })).toBeNull();
  });
});

describe('a device', () => {
  const shown = (patch: Partial<DeviceReport>): HTMLElement => {
    renderInPage(
      <OverviewReport
        run="resnet50"
        overview={{ ...overview, devices: [{ ...device, ...patch }] }}
      />,
    );
    return screen.getByRole('heading', { name: device.name }).closest('section') as HTMLElement;
  };

  it('shows its shares', () => {
    const card = shown({ busy_share: 0.5552 });
    expect(within(card).getByText('Busy').parentElement?.textContent).toContain(share(0.5552));
  });

  it('shows "not recorded" and the reason in place of zero', () => {
    const card = shown({
      occupancy_share: null,
      notes: { occupancy_share: 'This vendor’s traces hold no occupancy.' },
    });
    const row = within(card).getByText('Occupancy').parentElement;
    expect(row?.textContent).toContain('not recorded');
    expect(row?.textContent).toContain('hold no occupancy');
    expect(row?.textContent).not.toContain('0 %');
  });

  it('shows a doubt of several figures once, with their names', () => {
    const cut = 'In doubt: the file ends in the middle.';
    const card = shown({
      sm_efficiency_share: null,
      notes: { busy_share: cut, kernel_busy_share: cut, sm_efficiency_share: cut },
    });
    expect(within(card).getByText(`Busy, Kernels: ${cut}`)).toBeTruthy();
    expect(within(card).getByText('Busy').parentElement?.textContent).not.toContain(cut);
    expect(within(card).getByText('SM efficiency').parentElement?.textContent).toContain(cut);
  });

  it('shows a measured zero as zero', () => {
    const row = within(shown({ tensor_core_share: 0 })).getByText('Tensor cores').parentElement;
    expect(row?.textContent).toContain('0 %');
    expect(row?.textContent).not.toContain('not recorded');
  });
});

describe('the settings of the run', () => {
  const shown = (settings: Overview['settings']): HTMLElement => {
    renderInPage(<OverviewReport run="resnet50" overview={{ ...overview, settings }} />);
    return screen.getByRole('heading', { name: 'Recorded with' }).closest('section') as HTMLElement;
  };

  it('are grouped, with values in their units', () => {
    const loader = { group: 'DataLoader', subject: 'dataloaders[0]' };
    const card = shown([
      { ...loader, name: 'worker_count', label: 'Workers', value: 0, unit: 'count' },
      { ...loader, name: 'pin_memory', label: 'Pinned memory', value: 'off', unit: 'text' },
      {
        group: 'Host',
        subject: 'host',
        name: 'memory_bytes',
        label: 'Host memory',
        value: 24_000_000_000,
        unit: 'bytes',
      },
    ]);
    const group = within(card).getByRole('region', { name: 'Settings: DataLoader' });
    expect(within(group).getByText('Workers').nextSibling?.textContent).toBe('0');
    expect(within(group).getByText('Pinned memory').nextSibling?.textContent).toBe('off');
    expect(within(group).queryByText('Host memory')).toBeNull();
    expect(within(card).getByText('Host memory').nextSibling?.textContent).toBe('22.4 GiB');
    expect(within(card).queryByText(/trace_handler/)).toBeNull();
  });

  it('show the code that records them if there are none', () => {
    expect(within(shown([])).getByText(/stepscope\.trace_handler/)).toBeTruthy();
  });
});

it('shows an empty state without a device or steps', () => {
  const step = { ...overview.step, count: 0 };
  renderInPage(
    <OverviewReport run="resnet50" overview={{ ...overview, devices: [], steps: [], step }} />,
  );
  expect(screen.getByRole('heading', { name: 'No accelerator in this trace' })).toBeTruthy();
  expect(screen.getByRole('heading', { name: 'Recorded window' })).toBeTruthy();
  expect(screen.queryByTestId('columns')).toBeNull();
});
