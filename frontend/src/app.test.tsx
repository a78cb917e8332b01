import { screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { renderInPage } from '../tests/render';
import { outcome, runReport } from '../tests/samples';
import { noRuns, readingRun, unreadableRun } from '../tests/states';
import type { RunState, Runs } from './api/types.gen';
import { App } from './app';

const readyRun: RunState = {
  id: 'done',
  name: 'resnet50',
  synthetic: true,
  state: 'ready',
  workers: [
    {
      name: 'worker0',
      rank: 0,
      spans: ['1', '2'].map((label) => ({
        trace: `t${label}`,
        label,
        file: `worker0.${label}.pt.trace.json`,
        state: 'ready',
        progress: null,
        problem: null,
      })),
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
    expect(screen.getByText(/tensorboard_trace_handler\(/)).toBeTruthy();
  });

  it('is not called empty while it is looked through', async () => {
    answers.runs = { ...noRuns, scanning: true } satisfies Runs;
    renderInPage(<App />);
    expect(await screen.findByRole('heading', { name: 'Looking for traces in log' })).toBeTruthy();
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

  it('say how far reading has come', async () => {
    serve(readingRun);
    renderInPage(<App />);
    expect(await screen.findByRole('heading', { name: 'Reading llama_fsdp' })).toBeTruthy();
    expect(screen.getAllByText('2,345,678 events')).toHaveLength(2);
    expect(screen.getAllByText('123 MB of 516 MB')).toHaveLength(2);
    expect(screen.getAllByText('waiting').length).toBeGreaterThanOrEqual(2);
  });

  it('say what could not be read and what to do, and others are not affected', async () => {
    serve(readyRun, unreadableRun);
    answers['runs/done/advice'] = runReport([outcome({ title: 'A finding' })]);
    const { store } = renderInPage(<App />);
    expect(await screen.findByRole('button', { name: /A finding/ })).toBeTruthy();
    expect(screen.getByText(/worker0\.1\.pt\.trace\.json: The file is empty/)).toBeTruthy();
    store.write({ ...store.current(), run: 'broken' }, 'push');
    const failure = await screen.findByRole('alert');
    expect(within(failure).getByText(/Record it again/)).toBeTruthy();
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
    expect(screen.getByRole('heading', { name: 'Reading this page' })).toBeTruthy();
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
