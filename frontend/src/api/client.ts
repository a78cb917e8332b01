/** Requests to the API, relative to the page: any path prefix works. */
import type { ApiError, Gets, Overview, RunReport, Runs } from './types.gen';

/** A failed request, with a message and a hint for the user. */
export class RequestError extends Error {
  override readonly name = 'RequestError';

  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly hint: string,
  ) {
    super(message);
  }
}

const UNREACHABLE_HINT =
  'It may have been stopped, or the network is down. Start it again (tensorboard --logdir LOGDIR, or stepscope serve LOGDIR); this page keeps trying.';

const isApiError = (body: unknown): body is ApiError =>
  typeof body === 'object' && body !== null && 'code' in body && 'message' in body;

/** The server sends expected refusals with status 200, so that browsers do not log them as errors. */
export const STATUS = 'X-Stepscope-Status';

async function refusal(response: Response): Promise<RequestError> {
  const status = Number(response.headers.get(STATUS) ?? response.status);
  const body: unknown = await response.json().catch(() => null);
  if (isApiError(body)) return new RequestError(status, body.code, body.message, body.hint);
  const message = `The server responded with status ${status}.`;
  return new RequestError(status, 'unexpected', message, 'See the log of the server.');
}

/** Pages of other origins cannot send this header; the server requires it for changes. */
const HEADERS = { Accept: 'application/json', 'X-Stepscope': 'page' };

type Send = (path: string, options: RequestInit) => Promise<Response>;

export const fromServer: Send = (path, options) =>
  fetch(new URL(`api/${path}`, document.baseURI), { headers: HEADERS, ...options });

let send = fromServer;

/** Answers requests without a server: see `shared_file.ts`. */
export function answerFrom(source: Send): void {
  send = source;
}

async function request(path: string, options: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await send(path, options);
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new RequestError(0, 'unreachable', 'The server does not answer.', UNREACHABLE_HINT);
  }
  if (!response.ok || response.headers.has(STATUS)) throw await refusal(response);
  return response;
}

export const segment = encodeURIComponent;

/** A path that the API serves, with the names of its variable parts in braces. */
export type GetPath = keyof Gets;
export type ResponseOf<P extends GetPath> = Gets[P][1];

type NamesIn<P> = P extends `${string}{${infer Name}}${infer Rest}` ? Name | NamesIn<Rest> : never;
/** The query of a path; null and undefined are not sent. */
export type QueryOf<P extends GetPath> = { readonly [K in keyof Gets[P][0]]: Gets[P][0][K] | null };
/** The variable parts of a path and its query. */
export type ParametersOf<P extends GetPath> = QueryOf<P> & {
  readonly [Name in NamesIn<P>]: string | number;
};

const texts = (value: unknown): string[] => [value].flat().map(String);

/** The path with its variable parts filled in, and the other parameters as its query; lists are repeated. */
export function filled(path: string, parameters: object): string {
  const values = new Map(Object.entries(parameters));
  const address = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = segment(String(values.get(name)));
    values.delete(name);
    return value;
  });
  const given = [...values].filter(([, value]) => value !== null && value !== undefined);
  const pairs = given.flatMap(([name, value]) => texts(value).map((text) => [name, text]));
  return pairs.length === 0 ? address : `${address}?${new URLSearchParams(pairs)}`;
}

/** The URL of a response, for a link or an embedded page. */
export function addressOf<P extends GetPath>(path: P, parameters: ParametersOf<P>): string {
  return new URL(`api/${filled(path, parameters)}`, document.baseURI).href;
}

export type TableName = 'operators' | 'kernels';

/** Cancels or restarts the reading of one file, of a run's files, or the scan of the log directory. */
export type Change =
  | { readonly what: 'cancel' | 'read'; readonly of: 'traces' | 'runs'; readonly id: string }
  | { readonly what: 'cancel' | 'read'; readonly of: 'listing' };

async function get<P extends GetPath>(
  path: P,
  parameters: ParametersOf<P>,
  signal: AbortSignal,
): Promise<ResponseOf<P>> {
  return (await request(filled(path, parameters), { signal })).json();
}

async function bytes<P extends GetPath>(
  path: P,
  parameters: ParametersOf<P>,
  signal: AbortSignal,
): Promise<ArrayBuffer> {
  return (await request(filled(path, parameters), { signal })).arrayBuffer();
}

export const api = {
  get,
  bytes,
  runs: (signal: AbortSignal): Promise<Runs> => get('runs', {}, signal),
  /** The advice on a run, with the outcomes of all rules on one of its traces. */
  advice: (run: string, trace: string, signal: AbortSignal): Promise<RunReport> =>
    get('runs/{run}/advice', { run, trace }, signal),
  overview: (trace: string, signal: AbortSignal): Promise<Overview> =>
    get('traces/{trace}/overview', { trace }, signal),
  change: async (change: Change): Promise<Runs> => {
    const subject = change.of === 'listing' ? change.of : `${change.of}/${segment(change.id)}`;
    return (await request(`${subject}/${change.what}`, { method: 'POST' })).json();
  },
};
