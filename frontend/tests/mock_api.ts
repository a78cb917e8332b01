/**
 * A stand-in for the API, for `npm run dev` without a server and for screenshots; it serves the
 * fixtures of the views.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Connect, Plugin } from 'vite';
import type { RunReport, Runs } from '../src/api/types.gen.ts';
import { cancelledRun, readingRun, unreadableRun } from './states.ts';

const CONTENT_POLICY =
  "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; object-src 'none'";

const read = (path: string): string => readFileSync(new URL(path, import.meta.url), 'utf8');

const runs = JSON.parse(read('fixtures/runs.json')) as Runs;
const damaged = JSON.parse(read('../src/views/health/fixture.json')) as RunReport;

function adviceOn(run: string): string {
  const isDamaged = runs.runs.some(({ id, name }) => id === run && name === damaged.name);
  return read(`../src/views/${isDamaged ? 'health' : 'advice'}/fixture.json`);
}

function bodyOf(path: string): string | null {
  if (path === 'runs' || /\/(cancel|read)$/.test(path)) {
    const states = [readingRun, cancelledRun, unreadableRun];
    return JSON.stringify({ ...runs, runs: [...runs.runs, ...states] });
  }
  const run = /^runs\/([^/]+)\/advice$/.exec(path)?.[1];
  if (run !== undefined) return adviceOn(run);
  const resource = path.replace(/^(?:traces|runs)\/[^/]+\//, '');
  return isView(resource) ? read(`../src/views/${resource}/fixture.json`) : recorded(resource);
}

const isView = (name: string): boolean => ['overview', 'operators', 'kernels'].includes(name);

/** A response in `fixtures/<path with - for />.json` of a view. */
function recorded(resource: string): string | null {
  const name = `${resource.replaceAll('/', '-')}.json`;
  const folder = new URL('../src/views/', import.meta.url);
  const view = readdirSync(folder).find((name) =>
    existsSync(new URL(`${name}/fixtures/${name}`, folder)),
  );
  return view ? read(`../src/views/${view}/fixtures/${name}`) : null;
}

const respond: Connect.NextHandleFunction = (
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
    configureServer: (server) => void server.middlewares.use(respond),
    configurePreviewServer: (server) => void server.middlewares.use(respond),
  };
}

/** The server's content policy, so that `vite preview` enforces the same. */
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
