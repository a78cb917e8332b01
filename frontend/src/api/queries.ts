/** The API's answers as queries: cached, shared between views, cancelled when no longer wanted. */
import {
  keepPreviousData,
  type UseMutationResult,
  type UseQueryResult,
  useMutation,
  useQuery,
  useQueryClient,
} from '@tanstack/react-query';
import { inOrder } from '../core/natural';
import { spansOf } from '../core/progress';
import { api, type Change, RequestError, type TableName } from './client';
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

/** Changes with the files that can be shown, and with them, so that the advice is asked for anew. */
const readiness = (run: RunState): string =>
  spansOf(run)
    .filter((span) => span.state === 'ready')
    .map(({ trace, file_bytes, events }) => `${trace} ${file_bytes} ${events}`)
    .join();

export function useAdvice(run: RunState): UseQueryResult<RunReport> {
  return useQuery({
    queryKey: ['advice', run.id, readiness(run)],
    queryFn: ({ signal }) => api.advice(run.id, signal),
    // Until the advice on one more file is there, that on the others stays.
    placeholderData: (previous, query) =>
      query?.queryKey[1] === run.id ? keepPreviousData(previous) : undefined,
  });
}

export function useOverview(trace: string): UseQueryResult<Overview> {
  return useQuery({
    queryKey: ['overview', trace],
    queryFn: ({ signal }) => api.overview(trace, signal),
  });
}

export function useTableData(
  trace: string,
  name: TableName,
  group: string | null,
): UseQueryResult<Table> {
  return useQuery({
    queryKey: [name, trace, group],
    queryFn: ({ signal }) => api.table(trace, name, group, signal),
    // Another grouping of the same trace replaces the rows in place; another trace starts afresh.
    placeholderData: (previous, query) =>
      query?.queryKey[1] === trace ? keepPreviousData(previous) : undefined,
  });
}
