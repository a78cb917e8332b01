import { keepPreviousData, type UseQueryResult, useQuery } from '@tanstack/react-query';
import { api } from '../../api/client';
import { fileSet } from '../../api/queries';
import type { ComparisonAnswer } from '../../api/types.gen';
import { recordingsOf, type Side } from './sides';

const UNTIL_ALL_ARE_READ_MS = 1500;

/** Compares two sides, and again until all their traces are read. */
export function useComparison(before: Side, after: Side): UseQueryResult<ComparisonAnswer> {
  const parameters = {
    run: after.run.id,
    worker: after.worker,
    span: after.span,
    base_run: before.run.id,
    base_worker: before.worker,
    base_span: before.span,
  };
  return useQuery({
    queryKey: ['comparison', parameters, fileSet([before, after].flatMap(recordingsOf))],
    queryFn: ({ signal }) => api.get('comparison', parameters, signal),
    placeholderData: (previous, query) =>
      JSON.stringify(query?.queryKey[1]) === JSON.stringify(parameters)
        ? keepPreviousData(previous)
        : undefined,
    refetchInterval: ({ state }) =>
      state.data && state.data.before.waiting_count + state.data.after.waiting_count > 0
        ? UNTIL_ALL_ARE_READ_MS
        : false,
  });
}
