/** A stand-in for the API, for `npm run dev` without a backend and for screenshots: it serves the views' fixtures. */
import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Connect, Plugin } from 'vite';
import type { Runs } from '../src/api/types.gen.ts';
import { readingRun, unreadableRun } from './states.ts';

const CONTENT_POLICY =
  "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; object-src 'none'";

const read = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8');

function bodyOf(path: string): string | null {
  if (path === 'runs') {
    const runs = JSON.parse(read('fixtures/runs.json')) as Runs;
    return JSON.stringify({ ...runs, runs: [...runs.runs, readingRun, unreadableRun] });
  }
  if (/^runs\/[^/]+\/advice$/.test(path)) return read('../src/views/advice/fixture.json');
  const view = /^traces\/[^/]+\/(overview|operators|kernels)$/.exec(path)?.[1];
  return view ? read(`../src/views/${view}/fixture.json`) : null;
}

const answer: Connect.NextHandleFunction = (
  request: IncomingMessage,
  response: ServerResponse,
  next,
) => {
  const path = /\/api\/([^?]*)/.exec(request.url ?? '')?.[1];
  if (path === undefined) return next();
  const body = bodyOf(path);
  response.statusCode = body === null ? 404 : 200;
  response.setHeader('Content-Type', 'application/json');
  response.end(body ?? JSON.stringify({ code: 'not-found', message: `No ${path}.`, hint: '' }));
};

export function mockApi(): Plugin {
  return {
    name: 'stepscope-mock-api',
    configureServer: (server) => void server.middlewares.use(answer),
    configurePreviewServer: (server) => void server.middlewares.use(answer),
  };
}

/** The policy that the server sends, so that `vite preview` breaks what it would break. */
export function contentPolicy(): Plugin {
  return {
    name: 'stepscope-content-policy',
    configurePreviewServer: (server) =>
      void server.middlewares.use((_request, response, next) => {
        response.setHeader('Content-Security-Policy', CONTENT_POLICY);
        next();
      }),
  };
}
