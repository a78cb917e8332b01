import { act, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { renderInPage } from '../tests/render';
import { health, outcome, runReport } from '../tests/samples';
import {
  cancelledRun,
  noRuns,
  readingRun,
  resultWith,
  spanOf,
  unreadableRun,
} from '../tests/states';
import type { RunState, Runs, Span } from './api/types.gen';
import { App } from './app';
import { LANDING } from './state/location';
import { views } from './views';

const readyRun: RunState = {
  id: 'done',
  name: 'resnet50',
  synthetic: true,
  state: 'ready',
  result: null,
  workers: [
    {
      name: 'worker0',
      rank: 0,
      host: null,
      spans: ['1', '2'].map((label) =>
        spanOf({ trace: `t${label}`, label, file: `worker0.${label}.pt.trace.json` }),
      ),
    },
  ],
};

/** What the server answers, by the path after `api/`. */
let answers: Record<string, unknown>;

beforeEach(() => {
  answers = {};
  vi.stubGlobal('fetch', async (url: URL) => {
    const path = url.pathname.split('/api/')[1] ?? '';
    const body = answers[path];
    if (body === undefined) {
      const refusal = { code: 'unknown-trace', message: `No ${path}.`, hint: 'Look again.' };
      return new Response(JSON.stringify(refusal), { status: 404 });
    }
    return new Response(JSON.stringify(body));
  });
});
afterEach(() => vi.unstubAllGlobals());

const serve = (...runs: RunState[]): void => {
  answers.runs = { ...noRuns, runs } satisfies Runs;
};

describe('an empty log directory', () => {
  it('says what was looked for, and how to record', async () => {
    serve();
    renderInPage(<App />);
    expect(await screen.findByRole('heading', { name: 'No trace found in log' })).toBeTruthy();
    expect(screen.getByText(/files named <worker>/)).toBeTruthy();
    expect(screen.getByText(/stepscope record --log-dir log\/my_run -- python/)).toBeTruthy();
    expect(screen.getByText(/stepscope.trace_handler\(/)).toBeTruthy();
  });

  it.each(['s3://bucket/log', 'a, b', 'trace.json.gz'])(
    'that is no folder here is not recorded into: %s',
    async (logdir) => {
      answers.runs = { ...noRuns, logdir } satisfies Runs;
      renderInPage(<App />);
      expect(await screen.findByText(/record --log-dir log\/my_run -- python/)).toBeTruthy();
    },
  );

  it('is not called empty while it is looked through', async () => {
    answers.runs = { ...noRuns, scanning: true } satisfies Runs;
    renderInPage(<App />);
    expect(await screen.findByRole('heading', { name: 'Scanning log for traces' })).toBeTruthy();
  });
});

describe('runs', () => {
  it('show their advice once read', async () => {
    serve(readyRun);
    answers['runs/done/advice'] = runReport([outcome({ title: 'A finding' })]);
    renderInPage(<App />);
    expect(await screen.findByRole('button', { name: /A finding/ })).toBeTruthy();
    expect(screen.getAllByText(/not recorded\)/).length).toBeGreaterThan(0);
  });

  it('are named in the title, with the view and the span', async () => {
    serve(readyRun);
    answers['runs/done/advice'] = runReport([]);
    const { store } = renderInPage(<App />);
    await waitFor(() => expect(document.title).toBe('Advice, resnet50, span 1 – stepscope'));
    act(() => store.write({ ...store.current(), view: 'runs' }, 'push'));
    await waitFor(() => expect(document.title).toBe('Runs – stepscope'));
  });

  it('are shown in the default view where a link names an unknown one', async () => {
    serve(readyRun);
    answers['runs/done/advice'] = runReport([]);
    const { store } = renderInPage(<App />, { view: 'nonsense', search: 'x', worker: 'worker0' });
    await waitFor(() => expect(document.title).toBe('Advice, resnet50, span 1 – stepscope'));
    expect(store.current()).toMatchObject({ view: 'advice', search: '', worker: 'worker0' });
  });

  it.each([
    [null, 'runs'],
    ['done', 'advice'],
  ])('of which several are listed, likewise: with run %s in %s', async (run, view) => {
    serve(readyRun, readingRun);
    const { store } = renderInPage(<App />, { view: 'nonsense', run });
    await waitFor(() => expect(store.current().view).toBe(view));
  });

  it('say how far reading has come', async () => {
    serve(readingRun);
    renderInPage(<App />);
    expect(await screen.findByRole('heading', { name: 'Reading llama_fsdp' })).toBeTruthy();
    expect(screen.getAllByText('2,345,678 events')).toHaveLength(2);
    expect(screen.getAllByText('118 MiB of 492 MiB')).toHaveLength(2);
    expect(screen.getByText('number 2 in the queue')).toBeTruthy();
    expect(screen.getByText('Reading files: 4 or fewer are left').role).toBe('status');
  });

  it('show each file that is ready while others are read', async () => {
    const [ready] = readyRun.workers;
    if (!ready) throw new Error('the run has a worker');
    serve({ ...readyRun, state: 'reading', workers: [ready, ...readingRun.workers.slice(1)] });
    answers['runs/done/advice'] = runReport([outcome({ title: 'A finding' })]);
    const { store } = renderInPage(<App />);
    expect(await screen.findByRole('button', { name: /A finding/ })).toBeTruthy();
    expect(screen.getByText('3 files')).toBeTruthy();
    store.write({ ...store.current(), run: 'done', worker: 'rank2' }, 'push');
    expect(await screen.findByRole('heading', { name: 'Reading resnet50' })).toBeTruthy();
    await userEvent.click(screen.getByRole('link', { name: 'show worker0, span 1' }));
    expect(await screen.findByRole('button', { name: /A finding/ })).toBeTruthy();
  });

  it('that were cancelled say so in every view of theirs, and are read when that is asked for', async () => {
    serve(cancelledRun);
    const { store } = renderInPage(<App />);
    const heading = { name: 'Reading stopped was cancelled' };
    for (const { id } of views.filter(({ scope }) => scope !== 'runs')) {
      store.write({ ...store.current(), view: id }, 'push');
      expect(await screen.findByRole('heading', heading)).toBeTruthy();
    }
    answers['runs/stopped/read'] = { ...noRuns, loading: true, runs: [readingRun] };
    await userEvent.click(screen.getByRole('button', { name: /^Read all 2 again/ }));
    expect(await screen.findByRole('heading', { name: 'Reading llama_fsdp' })).toBeTruthy();
  });

  it('that cannot be read may be asked for again', async () => {
    serve(unreadableRun);
    renderInPage(<App />);
    answers['traces/broken-0/read'] = { ...noRuns, runs: [readingRun] };
    await userEvent.click(await screen.findByRole('button', { name: /^Read again/ }));
    expect(await screen.findByRole('heading', { name: 'Reading llama_fsdp' })).toBeTruthy();
  });

  it('are listed by the numbers in their names', async () => {
    serve(...['run_10', 'run_2', 'run_1'].map((name) => ({ ...readyRun, id: name, name })));
    renderInPage(<App />);
    await userEvent.click(await screen.findByRole('button', { name: /^Run/ }));
    expect(screen.getAllByRole('option').map((option) => option.textContent)).toEqual([
      'readyrun_1synthetic',
      'readyrun_2synthetic',
      'readyrun_10synthetic',
    ]);
  });

  it('are cancelled from every view', async () => {
    serve(readyRun, readingRun);
    answers['runs/done/advice'] = runReport([]);
    renderInPage(<App />, { run: 'done' });
    await userEvent.click(await screen.findByTitle('Files being read'));
    answers['runs/llama_fsdp/cancel'] = { ...noRuns, runs: [readyRun, cancelledRun] };
    await userEvent.click(screen.getByRole('button', { name: 'Cancel llama_fsdp' }));
    expect(await screen.findByText('2 files are ready, 2 cancelled')).toBeTruthy();
    expect(screen.queryByTitle('Files being read')).toBeNull();
  });

  it('say what could not be read and what to do, and others are not affected', async () => {
    serve(readyRun, unreadableRun);
    answers['runs/done/advice'] = runReport([outcome({ title: 'A finding' })]);
    const { store } = renderInPage(<App />);
    expect(await screen.findByRole('button', { name: /A finding/ })).toBeTruthy();
    expect(screen.queryByText(/The file is empty/)).toBeNull();
    store.write({ ...store.current(), run: 'broken' }, 'push');
    const failure = await screen.findByRole('alert');
    expect(within(failure).getByText(/Record it again/)).toBeTruthy();
    expect(await screen.findByText(/worker0\.1\.pt\.trace\.json: The file is empty/)).toBeTruthy();
  });

  it('are not mixed up: an unknown one is called unknown', async () => {
    serve(readyRun);
    answers['runs/done/advice'] = runReport([]);
    const { store } = renderInPage(<App />, { run: 'gone' });
    expect(await screen.findByRole('heading', { name: 'There is no such run' })).toBeTruthy();
    await userEvent.click(screen.getByRole('link', { name: 'Show the latest run' }));
    expect(store.current().run).toBeNull();
  });

  it('are chosen by typing', async () => {
    const many = [...'abcdefg'].map((id) => ({ ...readyRun, id, name: `run-${id}` }));
    serve(...many);
    for (const { id } of many) answers[`runs/${id}/advice`] = runReport([]);
    const { store } = renderInPage(<App />);
    await userEvent.click(await screen.findByRole('button', { name: /^Run/ }));
    await userEvent.keyboard('-f{Enter}');
    expect(store.current().run).toBe('f');
    await userEvent.click(screen.getByRole('button', { name: /^Span/ }));
    await userEvent.keyboard('{ArrowDown}{Enter}');
    expect(store.current()).toMatchObject({ run: 'f', worker: 'worker0', span: '2' });
  });
});

describe('a link without a view', () => {
  const other: RunState = { ...readyRun, id: 'other', name: 'other' };
  const worst: RunState = {
    ...readyRun,
    id: 'worst',
    name: 'worst',
    result: resultWith('critical', 0.5),
  };

  it('opens the list of several runs, and selects the one that comes first', async () => {
    serve(readyRun, other, worst);
    const { store } = renderInPage(<App />, { view: LANDING });
    expect(await screen.findByRole('table', { name: 'Runs and their files' })).toBeTruthy();
    expect(store.current().view).toBe('runs');
    expect(screen.getByTitle('worst').className).toContain('picker-value');
    expect(screen.getAllByRole('rowheader')[0]?.textContent).toContain('worst');
  });

  it('opens the advice on a single run', async () => {
    serve(readyRun);
    answers['runs/done/advice'] = runReport([outcome({ title: 'A finding' })]);
    const { store } = renderInPage(<App />, { view: LANDING });
    expect(await screen.findByRole('button', { name: /A finding/ })).toBeTruthy();
    expect(store.current().view).toBe('advice');
  });

  it('lists the runs while more may be found, and does not decide yet', async () => {
    answers.runs = { ...noRuns, scanning: true, runs: [readyRun] } satisfies Runs;
    const { store } = renderInPage(<App />, { view: LANDING });
    expect(await screen.findByRole('table', { name: 'Runs and their files' })).toBeTruthy();
    expect(store.current().view).toBe(LANDING);
  });
});

it('lists runs with the severity of their first finding and their step time', async () => {
  const slow = { ...readyRun, id: 'slow', name: 'slow', result: resultWith('critical', 0.5) };
  serve(readyRun, slow);
  answers['runs/done/advice'] = runReport([]);
  renderInPage(<App />, { run: 'done' });
  await userEvent.click(await screen.findByRole('button', { name: /^Run/ }));
  const options = screen.getAllByRole('option').map((option) => option.textContent);
  expect(options).toEqual(['readyresnet50synthetic', 'readycritical: slow20.0 ms/step, synthetic']);
});

describe('damage', () => {
  const [worker] = readyRun.workers;
  const damaged: RunState = {
    ...readyRun,
    workers: [{ name: 'worker0', rank: 0, host: null, spans: [spanOf({ damage: 'warning' })] }],
  };
  const item = health({
    message: 'the file ends in the middle',
    effect: 'low',
    affects: ['operators', 'verdict'],
  });

  it('is marked in the rail and in the lists, and leads to what was found', async () => {
    serve(damaged, { ...readyRun, id: 'whole', name: 'whole', workers: worker ? [worker] : [] });
    answers['runs/done/advice'] = runReport([], { health: [item] });
    const { store } = renderInPage(<App />, { run: 'done' });
    const rail = await screen.findByRole('navigation', { name: 'Views' });
    await userEvent.click(within(rail).getByRole('link', { name: 'Health has findings' }));
    expect(store.current().view).toBe('health');
    expect(await screen.findByText('The file ends in the middle.')).toBeTruthy();
    await userEvent.click(screen.getByRole('button', { name: /^Run/ }));
    const options = screen.getAllByRole('option').map((option) => option.textContent);
    expect(options).toEqual(['readyresnet50damagedsynthetic', 'readywholesynthetic']);
  });

  it('is said above the figures that rest on it, and nowhere else', async () => {
    serve(damaged);
    answers['runs/done/advice'] = runReport([], { health: [item] });
    const { store } = renderInPage(<App />, { view: 'operators' });
    const caution = await screen.findByRole('complementary', { name: 'Caution' });
    expect(caution.textContent).toBe(
      'Unreliable. The file ends in the middle. Health of this file',
    );
    store.write({ ...store.current(), view: 'kernels' }, 'push');
    await screen.findByRole('alert');
    expect(screen.queryByRole('complementary', { name: 'Caution' })).toBeNull();
  });
});

describe('the notice of damage', () => {
  it('is closed for the file in its state, and returns for another one', async () => {
    const file = (patch: Partial<Span>): RunState => ({
      ...readyRun,
      workers: [{ name: 'worker0', rank: 0, host: null, spans: [spanOf(patch)] }],
    });
    const item = health({ message: 'it ends early', effect: 'low', affects: ['operators'] });
    answers['runs/done/advice'] = runReport([], { health: [item] });
    const notice = { name: 'Caution' };
    serve(file({ damage: 'warning' }));
    const { unmount } = renderInPage(<App />, { view: 'operators' });
    const caution = await screen.findByRole('complementary', notice);
    await userEvent.click(within(caution).getByRole('button', { name: 'Close the notice' }));
    expect(screen.queryByRole('complementary', notice)).toBeNull();
    unmount();
    serve(file({ damage: 'warning', file_bytes: 2_000_000 }));
    renderInPage(<App />, { view: 'operators' });
    expect(await screen.findByRole('complementary', notice)).toBeTruthy();
  });
});

describe('a refusal', () => {
  it('is shown in the server’s words, in the view alone', async () => {
    serve(readyRun);
    renderInPage(<App />, { view: 'overview' });
    const failure = await screen.findByRole('alert');
    expect(failure.textContent).toContain('No traces/t1/overview.');
    expect(failure.textContent).toContain('Look again.');
    expect(screen.getByRole('navigation', { name: 'Views' })).toBeTruthy();
  });

  it('of everything says what to do', async () => {
    vi.stubGlobal('fetch', () => Promise.reject(new TypeError('Failed to fetch')));
    renderInPage(<App />);
    const failure = await screen.findByRole('alert');
    expect(failure.textContent).toContain('The server does not answer');
    expect(failure.textContent).toContain('tensorboard --logdir');
  });
});

describe('keys', () => {
  beforeEach(() => {
    serve(readyRun);
    answers['runs/done/advice'] = runReport([]);
  });

  it('lead to the views after g, and ? to the help', async () => {
    const { store } = renderInPage(<App />);
    await screen.findByRole('navigation', { name: 'Views' });
    await userEvent.keyboard('gk');
    await waitFor(() => expect(store.current().view).toBe('kernels'));
    await userEvent.keyboard('?');
    expect(await screen.findByRole('heading', { name: 'Reading this page' })).toBeTruthy();
  });

  it('are left alone while the user types', async () => {
    const { store } = renderInPage(<App />);
    await screen.findByRole('navigation', { name: 'Views' });
    const input = document.body.appendChild(document.createElement('input'));
    input.focus();
    await userEvent.keyboard('gk?');
    expect(input.value).toBe('gk?');
    expect(store.current().view).toBe('advice');
    input.remove();
  });
});
