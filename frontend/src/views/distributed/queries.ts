import type { UseQueryResult } from '@tanstack/react-query';
import { api, type Parameters } from '../../api/client';
import { basisOf, useFollowed } from '../../api/following';
import type { RunState, Span } from '../../api/types.gen';
import type { Selection } from '../../state/selection';

const spansOf = (run: RunState, label: string): Span[] =>
  run.workers.flatMap((worker) => worker.spans).filter((span) => span.label === label);

/** Data of all ranks of a run. */
export function useRanksQuery<T>(
  { run, span }: Pick<Selection, 'run' | 'span'>,
  path: string,
  parameters: Parameters = {},
): UseQueryResult<T> {
  return useFollowed({
    queryKey: ['ranks', run.id, path, span.label, parameters],
    ask: (signal) => api.get<T>(path, { run: run.id, span: span.label, ...parameters }, signal),
    basis: basisOf(spansOf(run, span.label)),
    isAlike: ([, otherRun, otherPath]) => otherRun === run.id && otherPath === path,
  });
}
