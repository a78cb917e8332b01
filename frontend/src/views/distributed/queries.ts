/** The answers on all ranks of one recording. */
import type { UseQueryResult } from '@tanstack/react-query';
import { api, type Parameters } from '../../api/client';
import { basisOf, useFollowed } from '../../api/following';
import type { RunState, Span } from '../../api/types.gen';
import type { Selection } from '../../state/selection';

const spansCalled = (run: RunState, label: string): Span[] =>
  run.workers.flatMap((worker) => worker.spans).filter((span) => span.label === label);

export function useRanksAnswer<T>(
  { run, span }: Pick<Selection, 'run' | 'span'>,
  path: string,
  parameters: Parameters = {},
  { enabled = true }: { readonly enabled?: boolean } = {},
): UseQueryResult<T> {
  return useFollowed({
    enabled,
    queryKey: ['ranks', run.id, path, span.label, parameters],
    ask: (signal) => api.get<T>(path, { run: run.id, span: span.label, ...parameters }, signal),
    basis: basisOf(spansCalled(run, span.label)),
    isAlike: ([, other, place]) => other === run.id && place === path,
  });
}
