/** The metrics of the heat map; the URL holds the selected one. */
import type { Distributed, DistributedStepsQuery } from '../../../api/types.gen';
import { useOption } from '../../../state/option';
import type { Segment } from '../../../widgets/segmented';

type Metric = NonNullable<DistributedStepsQuery['metric']>;

export const METRICS: readonly Segment<Metric>[] = [
  {
    id: 'own',
    label: 'Compute time',
    title: 'The step without exposed communication: the work of the rank itself',
  },
  { id: 'late', label: 'Lateness', title: 'Delay compared with the median rank' },
  { id: 'step', label: 'Step', title: 'Step time' },
  { id: 'computing', label: 'Computing', title: 'Time in which a device computes' },
  { id: 'waiting', label: 'Waiting', title: 'Waiting for other ranks while nothing computes' },
  { id: 'exposed', label: 'Exposed', title: 'Communication that does not overlap with computing' },
  {
    id: 'overlap',
    label: 'Overlap',
    title: 'Fraction of the communication that overlaps with computing',
  },
  { id: 'idle', label: 'Idle', title: 'Time in which the device is idle' },
  { id: 'loading', label: 'Data', title: 'Waiting for the next batch' },
  { id: 'copies', label: 'Copies', title: 'Copies that do not overlap with other work' },
];
const IDS = METRICS.map(({ id }) => id);

/** The metric that shows the first straggler; without a straggler the step time. */
export function defaultMetric({ stragglers }: Distributed): Metric {
  const [first] = stragglers;
  if (!first) return 'step';
  return first.found_by === 'own work' ? 'own' : 'late';
}

export const useMetric = (summary: Distributed) => useOption('metric', defaultMetric(summary), IDS);

/** The lower bound of a metric: negative lateness counts as none. */
export const floorOf = (metric: string): number =>
  metric === 'late' ? 0 : Number.NEGATIVE_INFINITY;
