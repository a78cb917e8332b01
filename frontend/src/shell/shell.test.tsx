import { act, fireEvent, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type Rendered, renderInPage } from '../../tests/render';
import { outcome, runReport } from '../../tests/samples';
import { noRuns, spanOf } from '../../tests/states';
import type { Names, Overview, RunState, Runs, StepRow, Tables } from '../api/types.gen';
import { App } from '../app';
import overviewFixture from '../views/overview/fixture.json';
import { clearToasts } from '../widgets/toast';

const STEP_NS = 20_000_000;
const PATIENCE = { timeout: 5000 };

/** Steps 3, 4, 5, … that the host begins 20 ms apart, the last a quarter longer. */
const stepsOf = (count: number): StepRow[] =>
  Array.from({ length: count }, (_, at) => ({
    number: 3 + at,
    name: `ProfilerStep#${3 + at}`,
    start_ns: at * STEP_NS,
    duration_ns: at === count - 1 ? 25_000_000 : STEP_NS,
    parts_ns: [],
    host_start_ns: at * STEP_NS,
    host_end_ns: (at + 1) * STEP_NS,
  }));

const overview = (steps: StepRow[]): Overview => ({
  ...(overviewFixture as unknown as Overview),
  steps,
  step: {
    count: steps.length,
    mean_ns: STEP_NS,
    standard_deviation_ns: 0,
    breakdown_ns: {},
    unrecorded: null,
  },
});

const names: Names = {
  schema: 1,
  kinds: [
    {
      kind: 'operator',
      names: ['aten::mm', 'aten::addmm'],
      times_ns: [9_000, 5_000],
      all_count: 2,
    },
    { kind: 'kernel', names: ['sm90_gemm_bf16'], times_ns: [7_000], all_count: 1 },
  ],
};

const workers = (count: number): RunState['workers'] =>
  Array.from({ length: count }, (_, rank) => ({
    name: `host-${rank}`,
    rank,
    host: null,
    spans: [spanOf({ trace: `t${rank}`, file: `host-${rank}.1.pt.trace.json` })],
  }));

const run = (id: string, count = 1): RunState => ({
  id,
  name: `run-${id}`,
  synthetic: false,
  state: 'ready',
  result: null,
  workers: workers(count),
});

let answers: Record<string, unknown>;

beforeEach(() => {
  answers = {
    'runs/a/advice': runReport([
      outcome({ rule: 'item-sync', title: 'Reading single values stalls the step', trace: 't0' }),
      outcome({
        rule: 'pageable-h2d-copy',
        title: 'Copies come from pageable memory',
        message: 'Copies come from pinned memory',
        status: 'passed',
        trace: 't0',
      }),
    ]),
    'traces/t0/overview': overview(stepsOf(4)),
    'traces/t0/names': names,
  };
  vi.stubGlobal('fetch', async (url: URL) => {
    const path = url.pathname.split('/api/')[1] ?? '';
    const body = answers[path];
    if (body !== undefined) return new Response(JSON.stringify(body));
    const refusal = { code: 'unknown-trace', message: `No ${path}.`, hint: '' };
    return new Response(JSON.stringify(refusal), { status: 404 });
  });
});
afterEach(() => {
  act(clearToasts);
  vi.unstubAllGlobals();
});

async function show(
  runs: RunState[] = [run('a')],
  start: Parameters<typeof renderInPage>[1] = {},
): Promise<Rendered> {
  answers.runs = { ...noRuns, runs } satisfies Runs;
  const page = renderInPage(<App />, { run: 'a', ...start });
  await screen.findByRole('navigation', { name: 'Views' });
  return page;
}

describe('narrowing', () => {
  const chip = () => screen.findByRole('group', { name: 'Filter of all views' });

  it('says the step with its duration, and what views show otherwise', async () => {
    await show();
    expect((await chip()).textContent).toContain('Whole trace');
  });

  it('goes from step to step by key and by button, and is let go with a way back', async () => {
    const { store } = await show();
    await userEvent.keyboard('.');
    await waitFor(() => expect(store.current().step).toBe(3));
    await userEvent.keyboard('.');
    await waitFor(() => expect(store.current().step).toBe(4));
    await userEvent.click(screen.getByRole('button', { name: 'Previous step' }));
    await waitFor(() => expect(store.current().step).toBe(3));
    expect((await chip()).textContent).toContain('Step 320.0 ms');
    await userEvent.keyboard('g0');
    expect(store.current().step).toBeNull();
    await userEvent.click(await screen.findByRole('button', { name: 'Undo' }));
    expect(store.current().step).toBe(3);
  });

  it('is chosen from the list of steps, one or a range', async () => {
    const { store } = await show();
    await userEvent.click(await screen.findByTitle(/^Filter all views/));
    const list = await screen.findByRole('listbox', { name: 'Steps' });
    expect(
      within(list)
        .getAllByRole('option')
        .map((each) => each.textContent),
    ).toEqual(['320.0 ms', '420.0 ms', '520.0 ms', '625.0 ms+25.0 %']);
    await userEvent.click(within(list).getAllByRole('option')[1] as HTMLElement);
    expect(store.current()).toMatchObject({ step: 4, time: null });
    await userEvent.click(await screen.findByTitle(/^All views that support it/));
    const to = await screen.findByLabelText('to');
    await userEvent.clear(screen.getByLabelText('From step'));
    await userEvent.type(screen.getByLabelText('From step'), '4');
    await userEvent.clear(to);
    await userEvent.type(to, '5{Enter}');
    expect(store.current()).toMatchObject({
      step: null,
      time: { startNs: STEP_NS, endNs: 3 * STEP_NS },
    });
    expect((await chip()).textContent).toContain('Steps 4–540.0 ms');
  });

  it('says so where the recording has no such step, or none at all', async () => {
    answers['traces/t0/overview'] = overview([]);
    const { store } = await show([run('a')], { step: 9 });
    await waitFor(async () =>
      expect((await chip()).textContent).toContain('Step 9not in this trace'),
    );
    await userEvent.keyboard('g0.');
    expect(await screen.findByText(/^This trace has no steps/)).toBeTruthy();
    expect(store.current().step).toBeNull();
  });

  it('is told above a view that shows the whole recording all the same', async () => {
    const { store } = await show([run('a')], { step: 4, view: 'health' });
    const note = await screen.findByRole('complementary', { name: 'Not filtered' });
    expect(note.textContent).toContain(
      'Health shows the whole trace; the filter (step 4) applies to other',
    );
    await userEvent.click(within(note).getByRole('button', { name: 'Clear filter' }));
    expect(store.current().step).toBeNull();
    expect(screen.queryByRole('complementary', { name: 'Not filtered' })).toBeNull();
  });

  it('is stated above a view of steps for a time range only', async () => {
    const time = { startNs: 0, endNs: 10 };
    const { store } = await show([run('a')], { time, view: 'distributed' });
    const note = await screen.findByRole('complementary', { name: 'Not filtered' });
    expect(note.textContent).toContain('Distributed shows the whole trace');
    act(() => store.write({ ...store.current(), time: null, step: 4 }, 'push'));
    expect(screen.queryByRole('complementary', { name: 'Not filtered' })).toBeNull();
  });
});

describe('the selected event', () => {
  it('is let go by its button or by Escape, once nothing else is open', async () => {
    const { store } = await show([run('a')], { event: 77 });
    expect(await screen.findByText('Event 77')).toBeTruthy();
    expect(screen.getByTitle(/show it in the timeline$/).closest('a')).toBeTruthy();
    await userEvent.click(screen.getByRole('button', { name: 'Help and keyboard' }));
    await userEvent.click(await screen.findByRole('button', { name: 'Close' }));
    expect(store.current().event).toBe(77);
    await userEvent.keyboard('{Escape}');
    expect(store.current().event).toBeNull();
    expect(screen.queryByText('Event 77')).toBeNull();
  });
});

it('names the selected event as the file does, once that is known', async () => {
  const slice = { event: 77, name: 'aten::mm', duration_ns: 1_500_000 };
  answers['traces/t0/timeline/slices/77'] = slice;
  const { store } = await show([run('a')], { event: 77 });
  expect(await screen.findByText('aten::mm')).toBeTruthy();
  expect(screen.getByText('1.50 ms')).toBeTruthy();
  await userEvent.click(screen.getByText('aten::mm'));
  expect(store.current()).toMatchObject({ view: 'timeline', event: 77 });
});

describe('search over everything', () => {
  const open = async (typed: string): Promise<HTMLElement> => {
    await userEvent.keyboard('{Control>}k{/Control}');
    const box = await screen.findByRole('combobox', { name: 'Find anything' });
    if (typed !== '') fireEvent.change(box, { target: { value: typed } });
    return screen.findByRole('listbox', { name: 'Results' });
  };
  const labels = (list: HTMLElement): (string | null)[] =>
    within(list)
      .queryAllByRole('option')
      .map((each) => each.textContent);

  const choose = async (typed: string, wanted: RegExp): Promise<void> => {
    const list = await open(typed);
    const hit = await waitFor(() => {
      const found = within(list)
        .getAllByRole('option')
        .find(({ textContent }) => wanted.test(textContent ?? ''));
      if (!found) throw new Error(`nothing found for ${typed}`);
      return found;
    }, PATIENCE);
    fireEvent.click(hit);
  };

  it('leads to a finding, a step, an operator, a kernel', async () => {
    const { store } = await show();
    await choose('reading single', /^Reading single values/);
    expect(store.current()).toMatchObject({ view: 'advice', open: 'item-sync' });
    await choose('step 5', /^Step 5/);
    expect(store.current().step).toBe(5);
    await choose('addmm', /^aten::addmm/);
    expect(store.current()).toMatchObject({ view: 'operators', search: 'aten::addmm', step: 5 });
    await choose('gemm', /gemm_bf16/);
    expect(store.current()).toMatchObject({ view: 'kernels', search: 'sm90_gemm_bf16' });
  }, 15_000);

  it('leads to a check that passed, by the sentence that is true then', async () => {
    const { store } = await show();
    await choose('pinned', /^Copies come from pinned memory/);
    expect(store.current()).toMatchObject({ view: 'advice', open: 'pageable-h2d-copy' });
  });

  it('leads to a table by what it tells', async () => {
    answers.tables = {
      schema: 1,
      tables: [
        {
          name: 'memory-leaks',
          title: 'Memory leaks',
          meaning: 'What is held.',
          columns: [],
          is_of_run: false,
        },
      ],
    } satisfies Tables;
    const { store } = await show();
    await choose('leaks', /^Memory leaks/);
    expect(store.current()).toMatchObject({ view: 'tables', options: { table: 'memory-leaks' } });
  });

  it('leads to a rank and to another run', async () => {
    answers['runs/b/advice'] = runReport([]);
    const { store } = await show([run('a', 3), run('b')], { step: 4 });
    await choose('rank 2', /^Rank 2/);
    expect(store.current()).toMatchObject({ run: 'a', worker: 'host-2', step: null });
    await choose('run-b', /^run-b/);
    expect(store.current().run).toBe('b');
  }, 15_000);

  it('marks the letters that were found, and says so where there are none', async () => {
    await show();
    const list = await open('heal');
    const found = [...list.querySelectorAll('mark')].map((mark) => mark.textContent);
    expect(found).toContain('Heal');
    const box = screen.getByRole('combobox', { name: 'Find anything' });
    fireEvent.change(box, { target: { value: 'healzzz' } });
    expect(await screen.findByText('No results for “healzzz”.')).toBeTruthy();
  });

  it('is driven by keys, and offers what was used lately first', async () => {
    const { store } = await show();
    await open('kern');
    await userEvent.keyboard('{Enter}');
    expect(store.current().view).toBe('kernels');
    const list = await open('');
    expect(labels(list)[0]).toMatch(/^Kernels/);
    expect(within(list).getByRole('group', { name: 'Recent' })).toBeTruthy();
    await userEvent.keyboard('{ArrowDown}{ArrowUp}{ArrowUp}');
    const active = screen.getByRole('combobox', { name: 'Find anything' });
    const last = within(list).getAllByRole('option').at(-1);
    expect(active.getAttribute('aria-activedescendant')).toBe(last?.id);
  });

  it('does what can be done: the help opens', async () => {
    await show();
    await choose('help', /^Help/);
    expect(await screen.findByRole('heading', { name: 'Reading this page' })).toBeTruthy();
  });

  it('shows few of very many, and says how many more there are', async () => {
    const many = Array.from({ length: 4000 }, (_, at) => `aten::op_${at}`);
    answers['traces/t0/names'] = {
      schema: 1,
      kinds: [{ kind: 'operator', names: many, times_ns: many.map(() => 1), all_count: 200_000 }],
    } satisfies Names;
    await show([run('a', 1024)]);
    const list = await open('op');
    expect(await within(list).findByText(/and 3,993 more: refine/)).toBeTruthy();
    expect(labels(list).length).toBeLessThan(60);
  });
});

describe('the rail', () => {
  it('says why a view has no data, and opens it all the same', async () => {
    answers['runs/a/advice'] = runReport([], {
      trace: 't0',
      record_next: [{ flag: 'memory', why: '', code: 'profile_memory=True' }],
    });
    const { store } = await show();
    const rail = screen.getByRole('navigation', { name: 'Views' });
    const memory = await within(rail).findByRole('link', {
      name: /Memory.*Allocations were not recorded: profile_memory=True records it/,
    });
    await userEvent.click(memory);
    expect(store.current().view).toBe('memory');
  });

  it('leads back to each view as it was left, by link and by key', async () => {
    const { store } = await show([run('a')], { view: 'operators', search: 'conv' });
    await userEvent.keyboard('ga');
    expect(store.current()).toMatchObject({ view: 'advice', search: '' });
    await userEvent.keyboard('gp');
    expect(store.current()).toMatchObject({ view: 'operators', search: 'conv' });
  });

  it('keeps to icons where that was chosen', async () => {
    const { unmount } = await show();
    await userEvent.click(screen.getByRole('button', { name: 'Icons only' }));
    unmount();
    await show();
    const button = screen.getByRole('button', { name: 'Icons only' });
    expect(button.getAttribute('aria-pressed')).toBe('true');
  });
});

describe('a run of 1,024 ranks', () => {
  it('finds a rank by its number, and holds few of them in the document', async () => {
    const { store } = await show([run('a', 1024)]);
    await userEvent.click(await screen.findByRole('button', { name: /^Worker/ }));
    expect(screen.getByRole('button', { name: '512–639' })).toBeTruthy();
    expect(screen.getAllByRole('option').length).toBeLessThan(60);
    await userEvent.click(screen.getByRole('button', { name: '512–639' }));
    expect(screen.getByRole('option', { name: /host-512/ })).toBeTruthy();
    await userEvent.type(screen.getByRole('combobox', { name: 'Find a worker' }), '777{Enter}');
    expect(store.current().worker).toBe('host-777');
  });

  it('shows another rank without what was of the one before', async () => {
    const options = { about: 'job', turned: '3', width: 'device' };
    const { store } = await show([run('a', 1024)], { view: 'modules', options });
    await userEvent.click(await screen.findByRole('button', { name: /^Worker/ }));
    await userEvent.type(screen.getByRole('combobox', { name: 'Find a worker' }), '777{Enter}');
    expect(store.current().options).toEqual({ width: 'device' });
  });
});

describe('the help', () => {
  it('lists the letter of every view, and keys that a view names itself', async () => {
    await show([run('a')], { view: 'operators' });
    await userEvent.keyboard('?');
    const dialog = (await screen.findByRole('heading', { name: 'Reading this page' })).closest(
      'dialog',
    ) as HTMLElement;
    expect(within(dialog).getByText('Health').parentElement?.textContent).toBe('ghHealth');
    const titles = within(dialog)
      .getAllByRole('heading', { level: 3 })
      .map((h) => h.textContent);
    expect(titles.slice(0, 3)).toEqual(['Go to a view', 'Everywhere', 'In Operators']);
  });

  it('refuses an address that is no editor’s', async () => {
    await show();
    await userEvent.keyboard('?');
    await userEvent.selectOptions(await screen.findByLabelText('open in'), 'own');
    await userEvent.type(screen.getByLabelText('URL'), 'javascript:alert(1)');
    expect(screen.getByRole('alert').textContent).toContain('the scheme of a web page');
  });
});
