import type { UseQueryResult } from '@tanstack/react-query';
import { api, type GetPath, type ParametersOf, type ResponseOf } from '../../api/client';
import { basisOf, useFollowed } from '../../api/following';
import type { Distributed, RunState, Span } from '../../api/types.gen';
import type { Selection } from '../../state/selection';

export interface JobProps {
  readonly selection: Selection;
  readonly summary: Distributed;
}

const spansOf = (run: RunState, label: string): Span[] =>
  run.workers.flatMap((worker) => worker.spans).filter((span) => span.label === label);

type RanksPath = Extract<GetPath, `distributed${string}`>;

/** Data of all ranks of a run. */
export function useRanksQuery<P extends RanksPath>(
  { run, span }: Pick<Selection, 'run' | 'span'>,
  path: P,
  parameters?: Omit<ParametersOf<P>, 'run' | 'span'>,
): UseQueryResult<ResponseOf<P>> {
  const all = { run: run.id, span: span.label, ...parameters } as unknown as ParametersOf<P>;
  return useFollowed({
    queryKey: ['ranks', run.id, path, span.label, parameters],
    ask: (signal) => api.get(path, all, signal),
    basis: basisOf(spansOf(run, span.label)),
    isAlike: ([, otherRun, otherPath]) => otherRun === run.id && otherPath === path,
  });
}
