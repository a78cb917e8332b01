import { afterEach, describe, expect, it, vi } from 'vitest';
import { noRuns } from '../../tests/states';
import { api, RequestError } from './client';
import { pollInterval, shouldRetry } from './queries';
import type { Runs } from './types.gen';

const runs = (patch: Partial<Runs>): Runs => ({ ...noRuns, ...patch });

describe('asking for the runs again', () => {
  it('is quick while files are read, slow when quiet, and stops out of sight', () => {
    expect(pollInterval(runs({ loading: true }), true)).toBe(1000);
    expect(pollInterval(runs({ scanning: true }), true)).toBe(1000);
    expect(pollInterval(runs({}), true)).toBe(10_000);
    expect(pollInterval(runs({ loading: true }), false)).toBe(false);
  });
});

describe('a refusal', () => {
  const refusal = (status: number, code: string): RequestError =>
    new RequestError(status, code, '', '');

  it('is asked again only where that can help', () => {
    expect(shouldRetry(0, refusal(404, 'unknown-trace'))).toBe(false);
    expect(shouldRetry(50, refusal(409, 'still-loading'))).toBe(true);
    expect(shouldRetry(50, refusal(503, 'busy'))).toBe(true);
    expect(shouldRetry(0, refusal(500, 'failed'))).toBe(true);
    expect(shouldRetry(1, refusal(500, 'failed'))).toBe(false);
    expect(shouldRetry(2, refusal(0, 'unreachable'))).toBe(false);
  });
});

describe('the client', () => {
  afterEach(() => vi.unstubAllGlobals());
  const signal = new AbortController().signal;
  const serve = (answer: () => Promise<Response>) => {
    const asked = vi.fn((_url: URL) => answer());
    vi.stubGlobal('fetch', asked);
    return asked;
  };

  it('asks relative to the page, with ids escaped', async () => {
    const asked = serve(async () => new Response('{}'));
    await api.get(
      'traces/{trace}/kernels',
      { trace: 'a/../b', group: 'launch', start_ns: null },
      signal,
    );
    const page = new URL('.', document.baseURI).href;
    expect(String(asked.mock.calls[0]?.[0])).toBe(
      `${page}api/traces/a%2F..%2Fb/kernels?group=launch`,
    );
  });

  it('changes what is read by a post with the page’s own header', async () => {
    const asked = vi.fn(async (_url: URL, _options: RequestInit) => new Response('{}'));
    vi.stubGlobal('fetch', asked);
    await api.change({ what: 'cancel', of: 'runs', id: 'a b' });
    const [url, options] = asked.mock.calls[0] ?? [];
    expect(String(url)).toBe(`${new URL('.', document.baseURI).href}api/runs/a%20b/cancel`);
    expect(options?.method).toBe('POST');
    expect(new Headers(options?.headers).has('X-Stepscope')).toBe(true);
  });

  it('hands the server’s words to the user', async () => {
    const body = JSON.stringify({
      code: 'unknown-run',
      message: 'No run x.',
      hint: 'See api/runs.',
    });
    serve(async () => new Response(body, { status: 404 }));
    await expect(api.advice('x', 't', signal)).rejects.toMatchObject({
      status: 404,
      code: 'unknown-run',
      message: 'No run x.',
      hint: 'See api/runs.',
    });
  });

  it('takes an everyday refusal for one, though it comes with status 200', async () => {
    const body = JSON.stringify({ code: 'not-recorded', message: 'no memory', hint: 'profile()' });
    serve(async () => new Response(body, { headers: { 'X-Stepscope-Status': '422' } }));
    await expect(
      api.get('traces/{trace}/memory/curve', { trace: 't' }, signal),
    ).rejects.toMatchObject({
      status: 422,
      code: 'not-recorded',
      hint: 'profile()',
    });
  });

  it('has words of its own for a proxy’s page and for silence', async () => {
    serve(async () => new Response('<html>', { status: 502 }));
    await expect(api.runs(signal)).rejects.toMatchObject({ status: 502, code: 'unexpected' });
    serve(async () => Promise.reject(new TypeError('Failed to fetch')));
    await expect(api.runs(signal)).rejects.toMatchObject({ status: 0, code: 'unreachable' });
  });
});
