/** Which ranks of the job have no recording. Pure. */
import type { Distributed } from '../../api/types.gen';
import type { Selection } from '../../state/selection';

export interface Missing {
  readonly count: number;
  /** `2-7, 9`. */
  readonly ranks: string;
}

/** None while files are still to be read, or were not read since somebody cancelled that: theirs are not missing. */
export function missingOf(
  { run, span }: Pick<Selection, 'run' | 'span'>,
  { waiting_count, missing_count, missing_ranks }: Distributed,
): Missing {
  const isCancelled = run.workers.some(({ spans }) =>
    spans.some(({ label, state }) => label === span.label && state === 'cancelled'),
  );
  if (waiting_count > 0 || isCancelled) return { count: 0, ranks: '' };
  return { count: missing_count, ranks: missing_ranks };
}
