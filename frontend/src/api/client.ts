/** Asks the API, relative to the page, so that any path prefix works. */
import type { ApiError, Overview, RunReport, Runs, Table } from './types.gen';

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

async function refusal(response: Response): Promise<RequestError> {
  const body: unknown = await response.json().catch(() => null);
  if (isApiError(body)) {
    return new RequestError(response.status, body.code, body.message, body.hint);
  }
  return new RequestError(
    response.status,
    'unexpected',
    `The server answered with status ${response.status}.`,
    'The server’s own log says why.',
  );
}

async function request<T>(path: string, options: RequestInit): Promise<T> {
  const url = new URL(`api/${path}`, document.baseURI);
  let response: Response;
  try {
    response = await fetch(url, options);
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new RequestError(0, 'unreachable', 'The server does not answer.', UNREACHABLE_HINT);
  }
  if (!response.ok) throw await refusal(response);
  return (await response.json()) as T;
}

const ACCEPT = { Accept: 'application/json' };

const ask = <T>(path: string, signal: AbortSignal): Promise<T> =>
  request(path, { signal, headers: ACCEPT });

/** What changes something carries a header that no page of another origin can send. */
const tell = <T>(path: string): Promise<T> =>
  request(path, { method: 'POST', headers: { ...ACCEPT, 'X-Stepscope': 'page' } });

const id = encodeURIComponent;

export type TableName = 'operators' | 'kernels';

/** What is to be done about the reading of one file, or of all files of a run. */
export interface Change {
  readonly what: 'cancel' | 'read';
  readonly of: 'traces' | 'runs';
  readonly id: string;
}

export const api = {
  runs: (signal: AbortSignal): Promise<Runs> => ask('runs', signal),
  advice: (run: string, signal: AbortSignal): Promise<RunReport> =>
    ask(`runs/${id(run)}/advice`, signal),
  overview: (trace: string, signal: AbortSignal): Promise<Overview> =>
    ask(`traces/${id(trace)}/overview`, signal),
  table: (
    trace: string,
    name: TableName,
    group: string | null,
    signal: AbortSignal,
  ): Promise<Table> =>
    ask(`traces/${id(trace)}/${name}${group === null ? '' : `?group=${id(group)}`}`, signal),
  change: ({ what, of, id: which }: Change): Promise<Runs> => tell(`${of}/${id(which)}/${what}`),
};
