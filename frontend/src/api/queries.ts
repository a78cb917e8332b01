/** The API's answers as queries: cached, shared between views, cancelled when no longer wanted. */
import {
  keepPreviousData,
  type UseMutationResult,
  type UseQueryResult,
  useMutation,
  useQuery,
  useQueryClient,
} from '@tanstack/react-query';
import { duration } from '../core/format';
import { inOrder } from '../core/natural';
import { spansOf } from '../core/progress';
import { useNavigation } from '../state/navigation';
import { api, type Change, type Parameters, RequestError, segment, type TableName } from './client';
import { basisOf, useFollowed } from './following';
import type { Overview, RunReport, RunState, Runs, Table } from './types.gen';

const WHILE_LOADING_MS = 1000;
const WHEN_QUIET_MS = 10_000;

/** How long until the runs are asked for again; false while nobody can see the page. */
export function pollInterval(runs: Runs | undefined, isVisible: boolean): number | false {
  if (!isVisible) return false;
  return runs && (runs.loading || runs.scanning) ? WHILE_LOADING_MS : WHEN_QUIET_MS;
}

/** Every answer but a plain refusal may come out otherwise in a moment. */
export function shouldRetry(failures: number, error: Error): boolean {
  if (!(error instanceof RequestError)) return failures < 2;
  if (error.code === 'still-loading') return true;
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

/** Cancels the reading of files, or asks for it again; the answer is how things stand then. */
export function useChange(): UseMutationResult<Runs, Error, Change> {
  const client = useQueryClient();
  return useMutation({
    networkMode: 'always',
    mutationFn: (change: Change) => api.change(change),
    onSuccess: async (runs) => {
      // An answer that is on its way may be from before.
      await client.cancelQueries({ queryKey: ['runs'] });
      client.setQueryData(['runs'], runs);
    },
  });
}

/**
 * What is said of a run and, in particular, of one of its recordings: of a run of a thousand ranks nobody needs what
 * every rule said of every rank at once.
 */
export function useAdvice(run: RunState, trace: string): UseQueryResult<RunReport> {
  return useFollowed({
    queryKey: ['advice', run.id, trace],
    ask: (signal) => api.advice(run.id, trace, signal),
    basis: basisOf(spansOf(run)),
    isAlike: ([, other]) => other === run.id,
  });
}

export function useOverview(
  trace: string,
  { enabled = true }: { readonly enabled?: boolean } = {},
): UseQueryResult<Overview> {
  return useQuery({
    enabled,
    queryKey: ['overview', trace],
    queryFn: ({ signal }) => api.overview(trace, signal),
  });
}

/** Any answer on one recording, by the endpoint's path; another question of the same recording replaces it in place. */
export function useTraceAnswer<T>(
  trace: string,
  path: string,
  parameters: Parameters = {},
  options: { readonly enabled?: boolean } = {},
): UseQueryResult<T> {
  return useQuery({
    queryKey: ['trace', trace, path, parameters],
    queryFn: ({ signal }) => api.get<T>(`traces/${segment(trace)}/${path}`, parameters, signal),
    placeholderData: (previous, query) =>
      query?.queryKey[1] === trace && query.queryKey[2] === path
        ? keepPreviousData(previous)
        : undefined,
    enabled: options.enabled ?? true,
  });
}

/** Any answer on all recordings of a run; asked anew when more of them can be shown. */
export function useRunAnswer<T>(
  run: RunState,
  path: string,
  parameters: Parameters = {},
): UseQueryResult<T> {
  return useFollowed({
    queryKey: ['run', run.id, path, parameters],
    ask: (signal) => api.get<T>(path, { run: run.id, ...parameters }, signal),
    basis: basisOf(spansOf(run)),
    isAlike: ([, other, place]) => other === run.id && place === path,
  });
}

/** The part of a recording that all views narrow to: its bounds as parameters, and words for it. */
export interface Narrowing {
  readonly start_ns: number;
  readonly end_ns: number;
  readonly label: string;
}

/** What the URL narrows the recording to; null: nothing; undefined: its steps are not known yet. */
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
  const found = overview.data.steps.find((each) => each.number === step);
  if (!found) return null;
  return { start_ns: found.host_start_ns, end_ns: found.host_end_ns, label: `step ${step}` };
}

/** A table of one recording, narrowed as all views are. */
export function useTableData(
  trace: string,
  name: TableName,
  group: string | null,
): UseQueryResult<Table> {
  const narrowing = useNarrowing(trace);
  const { start_ns, end_ns } = narrowing ?? {};
  return useTraceAnswer(
    trace,
    name,
    { group, start_ns, end_ns },
    { enabled: narrowing !== undefined },
  );
}
