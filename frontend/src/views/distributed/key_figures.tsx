import type { ReactNode } from 'react';
import type { Distributed, RankBreakdown, RunState, Span, Worker } from '../../api/types.gen';
import { count, duration, share } from '../../core/format';
import { type Fact, Facts } from '../../widgets/facts';
import { Goto } from '../../widgets/goto';
import { type JobProps, useRanksQuery } from './queries';
import { capital, missingOf, rankName } from './ranks';

/** Waiting for other ranks in the mean step, in ns and as a fraction; null if not recorded. */
export function waitingOf({
  categories,
  rows,
}: RankBreakdown): readonly [ns: number, of: number] | null {
  const part = categories.findIndex(({ id }) => id === 'waiting');
  const splitRows = rows.filter(({ wait_ns }) => wait_ns !== null);
  if (part < 0 || splitRows.length === 0) return null;
  const mean = (of: (row: (typeof splitRows)[number]) => number): number =>
    splitRows.reduce((sum, row) => sum + of(row), 0) / splitRows.length;
  const stepNs = mean((row) => row.duration_ns);
  const waitNs = mean((row) => row.parts_ns[part] ?? 0);
  return stepNs > 0 ? [waitNs, waitNs / stepNs] : null;
}

function Straggler({ summary }: { readonly summary: Distributed }): ReactNode {
  const { stragglers, straggler_count } = summary;
  const [first] = stragglers;
  if (!first?.is_straggler) return <>none</>;
  return (
    <>
      <Goto to={{ worker: first.worker }}>{capital(rankName(first))}</Goto>
      {straggler_count > 1 && <small> and {count(straggler_count - 1)} more</small>}
    </>
  );
}

const isDamaged = ({ damage, state }: Span): boolean =>
  state === 'unreadable' || damage === 'critical' || damage === 'warning';

const damagedOf = ({ workers }: RunState): Worker[] =>
  workers.filter(({ spans }) => spans.some(isDamaged));

/** The key figures of the job: mean step, waiting, stragglers, missing and damaged ranks. */
export function KeyFigures({ selection, summary }: JobProps): ReactNode {
  const { data } = useRanksQuery(selection, 'distributed/ranks', { step: null });
  const { ranks, world_size, mean_step_ns } = summary;
  const missing = missingOf(selection, summary);
  const waiting = data && waitingOf(data);
  const damaged = damagedOf(selection.run);
  const [first] = damaged;
  const facts: Fact[] = [
    [summary.steps.length > 0 ? 'Mean step' : 'Window', duration(mean_step_ns)],
    waiting && [
      'Lost to waiting',
      <>
        {share(waiting[1])} <small>{duration(waiting[0])} per step</small>
      </>,
      'Collectives wait for other ranks while nothing computes; mean over the ranks',
    ],
    ['Straggler', <Straggler key="straggler" summary={summary} />],
    [
      'Ranks',
      <>
        {count(ranks.length)}
        {world_size !== null && <small> of {count(world_size)}</small>}
        {missing.count > 0 && <small className="bad"> {count(missing.count)} missing</small>}
      </>,
    ],
    first && [
      'Damaged',
      <Goto
        key="damaged"
        to={damaged.length === 1 ? { view: 'health', worker: first.name } : { view: 'health' }}
        className="bad"
      >
        {damaged.length === 1
          ? capital(rankName({ rank: first.rank, worker: first.name }))
          : count(damaged.length)}
      </Goto>,
    ],
  ];
  return <Facts className="facts large" facts={facts} />;
}
