import { fireEvent, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { describe, expect, it } from 'vitest';
import runs from '../../../tests/fixtures/runs.json';
import { fakeApi, renderView } from '../../../tests/views';
import { nextOf, savingWords } from './findings';
import unchanged from './fixture.json';
import changed from './fixtures/what-if.json';
import fixes from './fixtures/what-if-fixes.json';
import names from './fixtures/what-if-names.json';
import timeline from './fixtures/what-if-timeline.json';
import Page from './page';

const api = fakeApi({
  runs,
  'what-if': (parameters: URLSearchParams) =>
    parameters.get('host') === '1' && !parameters.has('scale') && !parameters.has('fix')
      ? unchanged
      : changed,
  'what-if/names': names,
  'what-if/fixes': fixes,
  'what-if/timeline': timeline,
  tools: { perfetto: '', perfetto_hint: '' },
});
const shown = (options: Readonly<Record<string, string>> = {}) =>
  renderView(Page, 'whatif', { options });
const slider = (label: string) => screen.findByRole('slider', { name: label });

describe('the recorded step', () => {
  it('is shown as recorded, with examples of changes', async () => {
    const { store } = shown();
    expect(await screen.findByText(unchanged.headline)).toBeTruthy();
    await userEvent.click(await screen.findByRole('button', { name: 'Host 30 % faster' }));
    expect(store.current().options).toEqual({ host: '0.7' });
    expect(await screen.findByText(/30\.6\sms instead of 51\.4\sms/)).toBeTruthy();
  });
});

describe('a change', () => {
  it('by a slider is in the URL after a pause, and in the next request', async () => {
    const { store } = shown();
    fireEvent.change(await slider('Host time'), { target: { value: '0.7' } });
    expect(screen.getByText('30 % less time')).toBeTruthy();
    expect(store.current().options).toEqual({});
    await waitFor(() => expect(store.current().options).toEqual({ host: '0.7' }));
    await waitFor(() => expect(api.requests.some((path) => path.includes('host=0.7'))).toBe(true));
  });

  it('that follows another one at once replaces its request', async () => {
    shown();
    const input = await slider('Device time');
    await screen.findByText(/as recorded\./);
    for (const value of ['0.9', '0.8', '0.7', '0.6', '0.5'])
      fireEvent.change(input, { target: { value } });
    await waitFor(() =>
      expect(api.requests.some((path) => path.includes('device=0.5'))).toBe(true),
    );
    expect(api.requests.filter((path) => /device=0\.[6-9]/.test(path))).toEqual([]);
  });

  it('by a number above the slider is sent, and one out of range is not', async () => {
    const { store } = shown();
    const input = await screen.findByRole('spinbutton', { name: 'Host time: factor' });
    fireEvent.change(input, { target: { value: '-3' } });
    expect(screen.getByText('a number from 0 to 100')).toBeTruthy();
    fireEvent.change(input, { target: { value: '20' } });
    await waitFor(() => expect(store.current().options).toEqual({ host: '20' }));
  });

  it('is undone by Reset, which a slider follows', async () => {
    const { store } = shown({ host: '0.7', 'no-waits': 'yes' });
    expect(((await slider('Host time')) as HTMLInputElement).value).toBe('0.7');
    await userEvent.click(screen.getByRole('button', { name: 'Reset' }));
    expect(store.current().options).toEqual({});
    await waitFor(() =>
      expect((screen.getByRole('slider', { name: 'Host time' }) as HTMLInputElement).value).toBe(
        '1',
      ),
    );
  });

  it('shows the parts of both steps as bars and in a table', async () => {
    shown({ host: '0.7' });
    await screen.findByText(/instead of/);
    const [recorded, simulated] = screen.getAllByRole('img');
    expect(recorded?.getAttribute('aria-label')).toBe(
      'Recorded, 51.4 ms: host 24.1 ms, device 27.2 ms, launches and waits 125 µs',
    );
    expect(simulated?.getAttribute('aria-label')).toContain('Simulated, 30.6 ms');
    const rows = within(screen.getByRole('table')).getAllByRole('row');
    expect(rows.map((row) => row.textContent)).toEqual([
      'Limiting pathRecordedSimulatedChange',
      'Host24.1 ms16.9 ms−7.23 ms −30 %',
      'Device27.2 ms13.6 ms−13.6 ms −50 %',
      'Launches and waits125 µs125 µs0',
      'Mean step51.4 ms30.6 ms−20.8 ms −40 %',
    ]);
  });
});

describe('scales', () => {
  it('are added by search and keys, and removed', async () => {
    const { store } = shown();
    const box = await screen.findByRole('combobox', { name: /Add a scale/ });
    await userEvent.type(box, 'dataloader');
    const [first] = screen.getAllByRole('option');
    expect(first?.getAttribute('aria-selected')).toBe('true');
    await userEvent.keyboard('{Enter}');
    expect(store.current().options.scale).toMatch(/^operators:.*DataLoader.*=0\.5$/);
    const list = await screen.findByRole('list', { name: 'Scales' });
    await userEvent.click(within(list).getByRole('button', { name: /Remove/ }));
    expect(store.current().options).toEqual({});
  });

  it('show how many events they match', async () => {
    api.responses['what-if'] = { ...changed, matches: [6] };
    shown({ scale: 'operators:*DataLoader*=0' });
    expect(await screen.findByText('6 operator events')).toBeTruthy();
    expect(screen.getByRole('slider', { name: '*DataLoader*' })).toBeTruthy();
  });

  it('that match nothing are refused, and can still be removed', async () => {
    api.responses['what-if'] = {
      code: 'bad-request',
      message: "no kernels of this trace match 'gone'",
      hint: '',
    };
    shown({ scale: 'kernels:gone=0.5' });
    expect(await screen.findByText('A change does not apply to this trace')).toBeTruthy();
    expect(screen.getByRole('button', { name: 'Remove gone' })).toBeTruthy();
  });
});

describe('a trace', () => {
  it('of a CPU has no device to change', async () => {
    const none = { names: [], times_ns: [], counts: [], all_count: 0 };
    api.responses['what-if/names'] = { ...names, kernels: none, wait_count: 0 };
    shown();
    expect(await screen.findByText('no work of a device was recorded')).toBeTruthy();
    expect(((await slider('Device time')) as HTMLInputElement).disabled).toBe(true);
    const box = screen.getByRole('checkbox', { name: /never waits/ }) as HTMLInputElement;
    expect(box.disabled).toBe(true);
    expect(screen.queryByRole('button', { name: 'Devices twice as fast' })).toBeNull();
  });

  it('without steps says how to mark them', async () => {
    api.responses['what-if'] = { ...unchanged, step_count: 0 };
    shown();
    expect(await screen.findByText('Predicted trace')).toBeTruthy();
    expect(screen.getByText('profiler.step()')).toBeTruthy();
    expect(screen.getByText('Whole trace')).toBeTruthy();
  });

  it('that cannot be simulated says why', async () => {
    api.responses['what-if'] = {
      code: 'not-recorded',
      message: 'replayed with typical delays, the trace ends +5.0 % off its recorded end',
      hint: 'profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])',
    };
    shown();
    expect(await screen.findByText('This trace cannot be simulated')).toBeTruthy();
    expect(screen.getByText(/ends \+5\.0 % off its recorded end\./)).toBeTruthy();
  });
});

describe('workers', () => {
  it('are a number in the URL; without one, as recorded', async () => {
    const { store } = shown();
    const input = await screen.findByRole('spinbutton', { name: 'Worker processes' });
    fireEvent.change(input, { target: { value: '4' } });
    await waitFor(() => expect(store.current().options).toEqual({ workers: '4' }));
    await waitFor(() => expect(api.requests.some((path) => /workers=4/.test(path))).toBe(true));
    fireEvent.change(input, { target: { value: '' } });
    await waitFor(() => expect(store.current().options).toEqual({}));
  });

  it('that cannot be simulated say what to change', async () => {
    api.responses['what-if'] = {
      code: 'not-recorded',
      message: 'the number of cores was not recorded, and is not given',
      hint: 'stepscope.trace_handler(...)',
    };
    shown({ workers: '4' });
    expect(await screen.findByText('Workers cannot be simulated')).toBeTruthy();
    expect(screen.getByText(/under “Data loading”/)).toBeTruthy();
  });
});

describe('the timeline', () => {
  it('shows both versions of a step, and leads to the next one', async () => {
    const { store } = shown({ device: '0.5' });
    const region = await screen.findByRole('region', { name: 'Timeline' });
    expect(within(region).getByRole('img').getAttribute('aria-label')).toMatch(
      /^Recorded 51\.6 ms, simulated .* stream 7: busy .* recorded, .* simulated/,
    );
    const { step, steps } = timeline;
    await userEvent.click(within(region).getByRole('button', { name: 'Next step' }));
    const next = steps[steps.indexOf(step) + 1];
    expect(store.current().options).toEqual({ device: '0.5', at: String(next) });
    await waitFor(() =>
      expect(api.requests.some((path) => path.includes(`step=${next}&`))).toBe(true),
    );
  });

  it('is a trace to download with the same changes', async () => {
    shown({ device: '0.5' });
    const link = await screen.findByRole('link', { name: 'Download as a trace' });
    expect(link.getAttribute('href')).toMatch(/what-if\/file\?.*device=0\.5/);
  });
});

describe('findings', () => {
  const [first, second] = fixes.fixes;
  const boxOf = (title: string | undefined) =>
    screen.findByRole('checkbox', { name: new RegExp(`^${title}`) });

  it('are ticked into the URL and the requests', async () => {
    const { store } = shown();
    await userEvent.click(await boxOf(first?.title));
    await userEvent.click(await boxOf(second?.title));
    expect(store.current().options.fix).toBe(`${first?.rule},${second?.rule}`);
    const both = `fix=${first?.rule}&fix=${second?.rule}`;
    await waitFor(() => expect(api.requests.some((path) => path.includes(both))).toBe(true));
    await userEvent.click(await boxOf(first?.title));
    expect(store.current().options.fix).toBe(second?.rule);
  });

  it('show what they save, and which one matters next', async () => {
    shown();
    const region = await screen.findByRole('region', { name: 'Findings' });
    expect(region.textContent).toMatch(/saves 17\.2–22\.9 ms \(\d+\.\d–44\.5 %\)/);
    expect(within(region).getAllByText('next')).toHaveLength(1);
  });

  it('that this trace does not have can be unticked', async () => {
    const { store } = shown({ fix: 'gone-rule' });
    expect(await screen.findByText('not found in this trace')).toBeTruthy();
    await userEvent.click(await boxOf('gone-rule'));
    expect(store.current().options).toEqual({});
  });

  it('make the simulated time a range', async () => {
    api.responses['what-if'] = { ...changed, slowest_ns: changed.simulated_ns + 5e6 };
    shown({ fix: 'item-sync' });
    const bar = await screen.findByRole('img', { name: /^Simulated, 30\.6–35\.6 ms/ });
    expect(within(bar).getByTitle(/^Saved at most: 5,000,000 ns more/)).toBeTruthy();
  });
});

it('the next finding is the one that saves most of those that are not ticked', () => {
  const fix = (rule: string, high_ns: number, is_applied = false) => ({
    rule,
    title: rule,
    is_applied,
    low_ns: 0,
    high_ns,
  });
  expect(nextOf([fix('a', 90, true), fix('b', 40), fix('c', 60)], 1000)).toBe('c');
  expect(nextOf([fix('a', 90, true), fix('b', 0)], 1000)).toBeNull();
  expect(savingWords(fix('b', 0), 1000)).toBe('no more to save');
  expect(savingWords(fix('b', 100), 1000)).toBe('saves 0–100 ns (0–10.0 %)');
});
