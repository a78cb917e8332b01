/** The API's answers as queries: cached, shared between views, cancelled when no longer wanted. */
import { keepPreviousData, type UseQueryResult, useQuery } from '@tanstack/react-query';
import { api, RequestError, type TableName } from './client';
import type { Overview, RunReport, RunState, Runs, Table } from './types.gen';

const WHILE_LOADING_MS = 2000;
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
    refetchInterval: (query) => pollInterval(query.state.data, isVisible),
    refetchOnWindowFocus: true,
  });
}

/** Changes when another of the run's files can be read, so that the advice is asked for anew. */
const readiness = (run: RunState): string =>
  run.workers.map((worker) => worker.spans.map((span) => span.trace + span.state).join()).join(';');

export function useAdvice(run: RunState): UseQueryResult<RunReport> {
  return useQuery({
    queryKey: ['advice', run.id, readiness(run)],
    queryFn: ({ signal }) => api.advice(run.id, signal),
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
