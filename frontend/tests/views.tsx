/** What the tests of views share: a stand-in for the API, and a view rendered for a run of the fixtures. */
import type { ComponentType } from 'react';
import { afterEach, beforeEach, vi } from 'vitest';
import type { Runs } from '../src/api/types.gen';
import { HOME } from '../src/state/location';
import type { Patch } from '../src/state/navigation';
import { type Selection, select } from '../src/state/selection';
import type { PageProps } from '../src/views/view';
import fixture from './fixtures/runs.json';
import { type Rendered, renderInPage } from './render';

/** By path below `traces/<id>/`: a body, a refusal with its `code`, or a function of the parameters. */
type Responses = Record<string, unknown>;

interface FakeApi {
  responses: Responses;
  /** Requested paths with their parameters. */
  readonly requests: string[];
  /** The parameters of the last request of a path. */
  readonly last: (path: string) => URLSearchParams;
}

const NOT_FOUND = { code: 'not-found', message: 'Not found.', hint: '' };

/** Answers requests from before each test on, and forgets changes of the responses after it. */
export function fakeApi(initial: Responses): FakeApi {
  const requests: string[] = [];
  const last = (path: string): URLSearchParams => {
    const request = requests.findLast((other) => other.startsWith(`${path}?`)) ?? '';
    return new URLSearchParams(request.split('?')[1]);
  };
  const api: FakeApi = { responses: {}, requests, last };
  const respond = (url: URL): Response => {
    const path = String(url).replace(/^.*\/api\//, '');
    requests.push(path);
    const [name = '', query] = path.replace(/^(?:traces|runs)\/[^/]+\//, '').split('?');
    const response = api.responses[name] ?? NOT_FOUND;
    const body = typeof response === 'function' ? response(new URLSearchParams(query)) : response;
    if (body instanceof Response) return body;
    const isRefused = typeof body === 'object' && body !== null && 'code' in body;
    const status = body === NOT_FOUND ? 404 : isRefused ? 422 : 200;
    return new Response(JSON.stringify(body), { status });
  };
  beforeEach(() => {
    requests.length = 0;
    api.responses = { ...initial };
    vi.stubGlobal('fetch', (url: URL) => Promise.resolve(respond(url)));
  });
  afterEach(() => vi.unstubAllGlobals());
  return api;
}

/** What the page shows of the fixture's runs, or of others. */
export function selectionOf(start: Patch = {}, runs: unknown = fixture): Selection {
  const selected = select(runs as Runs, { ...HOME, ...start });
  if (selected.kind !== 'selected') throw new Error('the fixture has no such run');
  return selected.selection;
}

export const renderView = (
  Page: ComponentType<PageProps>,
  view: string,
  start: Patch = {},
): Rendered => renderInPage(<Page selection={selectionOf()} />, { view, ...start });
