import type { UseQueryResult } from '@tanstack/react-query';
import { usePolledQuery } from '../../api/polling';
import type { Candidates, ComparisonResult, RunState, Runs } from '../../api/types.gen';
import { spansOf } from '../../core/progress';
import { useNavigation } from '../../state/navigation';
import { selectedSteps } from './selected_steps';
import { type Side, spansOfSide } from './sides';

/** Compares two sides, and again until all their traces are read. */
export function useComparison(before: Side, after: Side): UseQueryResult<ComparisonResult> {
  const { options } = useNavigation().location;
  const parameters = {
    run: after.run.id,
    worker: after.worker,
    span: after.span,
    steps: selectedSteps(options, 'steps'),
    base_run: before.run.id,
    base_worker: before.worker,
    base_span: before.span,
    base_steps: selectedSteps(options, 'base-steps'),
  };
  return usePolledQuery('comparison', parameters, {
    spans: [before, after].flatMap(spansOfSide),
    waitingCount: (answer) => answer.before.waiting_count + answer.after.waiting_count,
  });
}

/** The runs to compare a run with; requested again while files are being read. */
export function useCandidates(run: RunState, runs: Runs): UseQueryResult<Candidates> {
  return usePolledQuery(
    'comparison/candidates',
    { run: run.id },
    {
      spans: runs.runs.flatMap(spansOf),
      waitingCount: () => (runs.loading ? 1 : 0),
    },
  );
}
