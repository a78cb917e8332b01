import type { UseQueryResult } from '@tanstack/react-query';
import { usePolledQuery } from '../../api/polling';
import type { ComparisonResult } from '../../api/types.gen';
import { type Side, spansOfSide } from './sides';

/** Compares two sides, and again until all their traces are read. */
export function useComparison(before: Side, after: Side): UseQueryResult<ComparisonResult> {
  const parameters = {
    run: after.run.id,
    worker: after.worker,
    span: after.span,
    base_run: before.run.id,
    base_worker: before.worker,
    base_span: before.span,
  };
  return usePolledQuery('comparison', parameters, {
    spans: [before, after].flatMap(spansOfSide),
    waitingCount: (answer) => answer.before.waiting_count + answer.after.waiting_count,
  });
}
