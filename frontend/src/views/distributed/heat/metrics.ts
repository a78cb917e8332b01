/** The figures that the ranks are compared by; the chosen one is in the URL. */
import type { Distributed } from '../../../api/types.gen';
import { useOption } from '../../../state/option';

export const METRICS: readonly { id: string; label: string; title: string }[] = [
  {
    id: 'own',
    label: 'Own work',
    title: 'The step less communication that no computing hides: what the rank does by itself',
  },
  { id: 'late', label: 'Lateness', title: 'How much later than the median rank it came' },
  { id: 'step', label: 'Step', title: 'Step time' },
  { id: 'computing', label: 'Computing', title: 'A device computes' },
  { id: 'waiting', label: 'Waiting', title: 'Waiting for other ranks while nothing computes' },
  { id: 'exposed', label: 'Exposed', title: 'Communication that no computing hides' },
  { id: 'overlap', label: 'Overlap', title: 'Share of the communication that computing hides' },
  { id: 'idle', label: 'Idle', title: 'The device does nothing' },
  { id: 'loading', label: 'Data', title: 'Waiting for the next batch' },
  { id: 'copies', label: 'Copies', title: 'Copying and nothing else' },
];
const IDS = METRICS.map(({ id }) => id);

/** What shows the first straggler; lateness needs collectives of several ranks, without which the step tells most. */
export function usualMetric({ stragglers }: Distributed): string {
  const [first] = stragglers;
  if (!first) return 'step';
  return first.found_by === 'own work' ? 'own' : 'late';
}

export const useMetric = (summary: Distributed) => useOption('metric', usualMetric(summary), IDS);

/** Lateness below nothing is no lateness. */
export const floorOf = (metric: string): number =>
  metric === 'late' ? 0 : Number.NEGATIVE_INFINITY;
