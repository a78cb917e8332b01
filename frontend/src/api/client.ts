/** Asks the API, relative to the page, so that any path prefix works. */
import type { ApiError, Overview, RunReport, Runs } from './types.gen';

/** Why a request has no answer, in words for the user. */
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
  'It may have been stopped, or the network in between is down. Start it again (tensorboard --logdir LOGDIR, or stepscope serve LOGDIR); this page tries again by itself.';

function isApiError(body: unknown): body is ApiError {
  return typeof body === 'object' && body !== null && 'code' in body && 'message' in body;
}

/** Our own page gets everyday refusals with status 200, so that browsers do not log them as errors. */
const STATUS = 'X-Stepscope-Status';

const statusOf = (response: Response): number =>
  Number(response.headers.get(STATUS) ?? response.status);

async function refusal(response: Response): Promise<RequestError> {
  const status = statusOf(response);
  const body: unknown = await response.json().catch(() => null);
  if (isApiError(body)) {
    return new RequestError(status, body.code, body.message, body.hint);
  }
  return new RequestError(
    status,
    'unexpected',
    `The server answered with status ${status}.`,
    'The server’s own log says why.',
  );
}

async function fetched(path: string, options: RequestInit): Promise<Response> {
  const url = new URL(`api/${path}`, document.baseURI);
  let response: Response;
  try {
    response = await fetch(url, options);
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new RequestError(0, 'unreachable', 'The server does not answer.', UNREACHABLE_HINT);
  }
  if (!response.ok || response.headers.has(STATUS)) throw await refusal(response);
  return response;
}

async function request<T>(path: string, options: RequestInit): Promise<T> {
  return (await (await fetched(path, options)).json()) as T;
}

/** No page of another origin can send this header; what changes something is refused without it. */
const OURS = { Accept: 'application/json', 'X-Stepscope': 'page' };

const ask = <T>(path: string, signal: AbortSignal): Promise<T> =>
  request(path, { signal, headers: OURS });

const tell = <T>(path: string): Promise<T> => request(path, { method: 'POST', headers: OURS });

/** A word as part of a path. */
export const segment = encodeURIComponent;

/** Parameters behind the `?`; what is null or undefined is left out. */
export type Parameters = Readonly<Record<string, string | number | boolean | null | undefined>>;

function withParameters(path: string, parameters: Parameters): string {
  const given = Object.entries(parameters).filter(
    (pair): pair is [string, string | number | boolean] =>
      pair[1] !== null && pair[1] !== undefined,
  );
  const text = new URLSearchParams(given.map(([key, value]) => [key, String(value)])).toString();
  return text === '' ? path : `${path}?${text}`;
}

/** The address of an answer, for a link or an embedded page. */
export function addressOf(path: string, parameters: Parameters = {}): string {
  return new URL(`api/${withParameters(path, parameters)}`, document.baseURI).href;
}

export type TableName = 'operators' | 'kernels';

/** What is to be done about the reading of one file, of all files of a run, or about looking for files. */
export type Change =
  | { readonly what: 'cancel' | 'read'; readonly of: 'traces' | 'runs'; readonly id: string }
  /** The look through the log directory. */
  | { readonly what: 'cancel' | 'read'; readonly of: 'listing' };

export const api = {
  runs: (signal: AbortSignal): Promise<Runs> => ask('runs', signal),
  /** The advice on a run, with what every rule said of one of its recordings. */
  advice: (run: string, trace: string, signal: AbortSignal): Promise<RunReport> =>
    ask(withParameters(`runs/${segment(run)}/advice`, { trace }), signal),
  overview: (trace: string, signal: AbortSignal): Promise<Overview> =>
    ask(`traces/${segment(trace)}/overview`, signal),
  /** Any answer of the API, by its path below `api/`; words in the path that vary go through `segment`. */
  get: <T>(path: string, parameters: Parameters, signal: AbortSignal): Promise<T> =>
    ask(withParameters(path, parameters), signal),
  bytes: async (path: string, parameters: Parameters, signal: AbortSignal): Promise<ArrayBuffer> =>
    (await fetched(withParameters(path, parameters), { signal, headers: OURS })).arrayBuffer(),
  change: (change: Change): Promise<Runs> =>
    tell(
      change.of === 'listing'
        ? `listing/${change.what}`
        : `${change.of}/${segment(change.id)}/${change.what}`,
    ),
};
