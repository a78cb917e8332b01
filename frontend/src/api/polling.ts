import { keepPreviousData, type UseQueryResult, useQuery } from '@tanstack/react-query';
import { api, type GetPath, type ParametersOf, type ResponseOf } from './client';
import { fileSet } from './queries';
import type { Span } from './types.gen';

const INTERVAL_MS = 1500;

interface Options<Response> {
  /** The files that the response is computed from. */
  readonly spans: readonly Span[];
  /** How many of them are still being read. */
  readonly waitingCount: (response: Response) => number;
}

/** A response about several files, requested again until all of them are read. */
export function usePolledQuery<P extends GetPath>(
  path: P,
  parameters: ParametersOf<P>,
  { spans, waitingCount }: Options<ResponseOf<P>>,
): UseQueryResult<ResponseOf<P>> {
  return useQuery({
    queryKey: [path, parameters, fileSet(spans)],
    queryFn: ({ signal }) => api.get(path, parameters, signal),
    placeholderData: (previous, query) =>
      JSON.stringify(query?.queryKey[1]) === JSON.stringify(parameters)
        ? keepPreviousData(previous)
        : undefined,
    refetchInterval: ({ state }) =>
      state.data !== undefined && waitingCount(state.data) > 0 ? INTERVAL_MS : false,
  });
}
