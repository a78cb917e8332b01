/** The API's responses as queries: cached, shared between views, cancelled when no longer needed. */
import {
  keepPreviousData,
  type UseMutationResult,
  type UseQueryResult,
  useMutation,
  useQuery,
  useQueryClient,
} from '@tanstack/react-query';
import { useSyncExternalStore } from 'react';
import { duration } from '../core/format';
import { inOrder } from '../core/natural';
import { spansOf } from '../core/progress';
import { visibleStore } from '../host/visible';
import { useNavigation } from '../state/navigation';
import {
  api,
  type Change,
  filled,
  type GetPath,
  type ParametersOf,
  RequestError,
  type ResponseOf,
  type TableName,
} from './client';
import { basisOf, useFollowed } from './following';
import type { Overview, RunReport, RunState, Runs, Span, Table } from './types.gen';

const WHILE_LOADING_MS = 1000;
const WHEN_QUIET_MS = 10_000;

/** Milliseconds until the runs are requested again; false while the page is hidden. */
export function pollInterval(runs: Runs | undefined, isVisible: boolean): number | false {
  if (!isVisible) return false;
  return runs && (runs.loading || runs.scanning || runs.has_pending_results)
    ? WHILE_LOADING_MS
    : WHEN_QUIET_MS;
}

/** Failures that may be temporary are retried. */
export function shouldRetry(failures: number, error: Error): boolean {
  if (!(error instanceof RequestError)) return failures < 2;
  if (error.code === 'still-loading' || error.code === 'busy') return true;
  return error.status >= 500 ? failures < 1 : error.status === 0 && failures < 2;
}

export function useRuns(isVisible: boolean): UseQueryResult<Runs> {
  return useQuery({
    queryKey: ['runs'],
    queryFn: ({ signal }) => api.runs(signal),
    select: inOrder,
    refetchInterval: (query) => pollInterval(query.state.data, isVisible),
    refetchOnWindowFocus: true,
  });
}

/** The runs for a view, without further requests; undefined until they are loaded. */
export function useRunList(): Runs | undefined {
  return useRuns(useSyncExternalStore(visibleStore.subscribe, visibleStore.current)).data;
}

/** Cancels the reading of files, or requests it again. */
export function useChange(): UseMutationResult<Runs, Error, Change> {
  const client = useQueryClient();
  return useMutation({
    networkMode: 'always',
    mutationFn: (change: Change) => api.change(change),
    onSuccess: async (runs) => {
      // A response under way may be older than this one.
      await client.cancelQueries({ queryKey: ['runs'] });
      client.setQueryData(['runs'], runs);
    },
  });
}

/** The advice on a run, with the outcomes of all rules on one of its traces. */
export function useAdvice(run: RunState, trace: string): UseQueryResult<RunReport> {
  return useFollowed({
    queryKey: ['advice', run.id, trace],
    ask: (signal) => api.advice(run.id, trace, signal),
    basis: basisOf(spansOf(run)),
    isAlike: ([, other]) => other === run.id,
  });
}

/** A response that never changes while the page is open. */
export function useStaticQuery<P extends GetPath>(
  path: P,
  parameters: ParametersOf<P>,
): UseQueryResult<ResponseOf<P>> {
  return useQuery({
    queryKey: ['static', path, parameters],
    queryFn: ({ signal }) => api.get(path, parameters, signal),
    staleTime: Number.POSITIVE_INFINITY,
  });
}

interface Enabled {
  readonly enabled?: boolean;
}

export function useOverview(
  trace: string,
  { enabled = true }: Enabled = {},
): UseQueryResult<Overview> {
  return useQuery({
    enabled,
    queryKey: ['overview', trace],
    queryFn: ({ signal }) => api.overview(trace, signal),
  });
}

type Below<Prefix extends string, P = GetPath> = P extends `${Prefix}${infer Rest}` ? Rest : never;
type TracePath = Below<'traces/{trace}/'>;
type OfTrace<P extends TracePath> = `traces/{trace}/${P}`;

/** The key of a query about one trace. */
export const traceKey = (trace: string, path: string, parameters: object): readonly unknown[] => [
  'trace',
  trace,
  path,
  parameters,
];

/** A response about one trace. The previous response to the same path is shown until then. */
export function useTraceQuery<P extends TracePath>(
  trace: string,
  path: P,
  parameters?: Omit<ParametersOf<OfTrace<P>>, 'trace'>,
  { enabled = true }: Enabled = {},
): UseQueryResult<ResponseOf<OfTrace<P>>> {
  const all = { trace, ...parameters } as unknown as ParametersOf<OfTrace<P>>;
  const key = traceKey(trace, path, parameters ?? {});
  const resource = (of: readonly unknown[]): string =>
    `${of[1]} ${filled(String(of[2]), of[3] as object).split('?')[0]}`;
  return useQuery({
    queryKey: key,
    queryFn: ({ signal }) => api.get<OfTrace<P>>(`traces/{trace}/${path}`, all, signal),
    placeholderData: (previous, last) =>
      last && resource(last.queryKey) === resource(key) ? keepPreviousData(previous) : undefined,
    enabled,
  });
}

/** A response about all traces of a run; requested again when more of them are ready. */
export function useRunQuery<P extends GetPath>(
  run: RunState,
  path: P,
  parameters?: Omit<ParametersOf<P>, 'run'>,
): UseQueryResult<ResponseOf<P>> {
  const all = { run: run.id, ...parameters } as unknown as ParametersOf<P>;
  return useFollowed({
    queryKey: ['run', run.id, path, parameters ?? {}],
    ask: (signal) => api.get(path, all, signal),
    basis: basisOf(spansOf(run)),
    isAlike: ([, otherRun, otherPath]) => otherRun === run.id && otherPath === path,
  });
}

/** The time range that all views are filtered to, as parameters and as a label. */
export interface Narrowing {
  readonly start_ns: number;
  readonly end_ns: number;
  readonly label: string;
}

/** The time range in the URL; null: none; undefined: the steps are not loaded yet. */
export function useNarrowing(trace: string): Narrowing | null | undefined {
  const { location } = useNavigation();
  const { step, time } = location;
  const overview = useOverview(trace, { enabled: time === null && step !== null });
  if (time) {
    const { startNs: start_ns, endNs: end_ns } = time;
    return { start_ns, end_ns, label: `${duration(start_ns)} – ${duration(end_ns)}` };
  }
  if (step === null) return null;
  if (!overview.data) return overview.error ? null : undefined;
  const row = overview.data.steps.find(({ number }) => number === step);
  return row
    ? { start_ns: row.host_start_ns, end_ns: row.host_end_ns, label: `step ${step}` }
    : null;
}

/** A table of one trace, filtered to the time range of all views. */
export function useTableData(
  trace: string,
  name: TableName,
  group: string | null,
): UseQueryResult<Table> {
  const narrowing = useNarrowing(trace);
  const { start_ns, end_ns } = narrowing ?? {};
  const enabled = narrowing !== undefined;
  return useTraceQuery(trace, name, { group, start_ns, end_ns }, { enabled });
}

/**
 * A key for a set of files, as part of a query's key. It changes when a file appears, is removed, rewritten or cannot
 * be read; not with each file that is read, since a request about thousands of files would then restart before it ends.
 */
export function fileSet(spans: readonly Span[]): string {
  const ended = spans.filter(({ state }) => state === 'unreadable' || state === 'cancelled').length;
  const bytes = spans.reduce((sum, { file_bytes }) => sum + file_bytes, 0);
  return `${spans.length} files, ${bytes} bytes, ${ended} given up`;
}
