import type { ReactNode } from 'react';
import type { Distributed, Straggler } from '../../api/types.gen';
import { count, duration, plural, quantityExact } from '../../core/format';
import { useNavigation } from '../../state/navigation';
import { withOptions } from '../../state/option';
import { Card } from '../../widgets/card';
import { Goto } from '../../widgets/goto';
import { Icon } from '../../widgets/icon';
import { withMinus } from './heat/labels';
import { capital, rankName, stepRanges } from './ranks';

const SHOWN = 6;

interface ItemProps {
  readonly straggler: Straggler;
  readonly isSelected: boolean;
  readonly barNs: number;
}

const CAUSES: Readonly<Record<string, string>> = {
  computing: 'It computes longer',
  copies: 'It copies longer',
  'data loading': 'It waits longer for data',
  host: 'Its host is slower',
};

/** The delay that it causes: its lateness, or its excess work where its whole group is late with it. */
export const delayNs = ({ found_by, lateness_ns, own_excess_ns }: Straggler): number | null =>
  found_by === 'own work' ? own_excess_ns : lateness_ns;

function when({ late_steps, since_step, is_straggler }: Straggler): string {
  if (!is_straggler) return '';
  if (since_step !== null) return `since step ${since_step}`;
  return late_steps.length > 0 ? `in steps ${stepRanges(late_steps)}` : '';
}

function Item({ straggler, isSelected, barNs }: ItemProps): ReactNode {
  const { location } = useNavigation();
  const { worker, cause, cause_ns } = straggler;
  const delay = delayNs(straggler);
  const late = Math.max(0, delay ?? 0);
  const step = straggler.late_steps.at(-1) ?? location.step;
  return (
    <li className={straggler.is_straggler ? 'straggler is-late' : 'straggler'}>
      <div className="straggler-head flex">
        <Goto
          to={{ worker, step: location.step }}
          className="straggler-name inline"
          current={isSelected}
          title="Select this rank"
        >
          {straggler.is_straggler && <Icon name="warning" size={15} />}
          {capital(rankName(straggler))}
        </Goto>
        <span className="straggler-when note">{when(straggler)}</span>
        <span className="number" title={quantityExact(delay, 'ns')}>
          {delay === null ? '–' : withMinus(delay, 'ns')}
        </span>
      </div>
      <div className="track" aria-hidden="true">
        <span style={{ width: `${barNs > 0 ? (late / barNs) * 100 : 0}%` }} />
      </div>
      {straggler.is_straggler && (
        <>
          <p>
            Last to {count(straggler.last_count)} of{' '}
            {plural(straggler.collective_count, 'collective')}; the others wait{' '}
            {duration(straggler.wait_caused_ns)} per step for it in total.{' '}
            {cause !== null && cause_ns !== null
              ? `${CAUSES[cause] ?? capital(cause)}: ${duration(cause_ns)} per step.`
              : 'The traces do not show the cause.'}
          </p>
          <p className="straggler-links">
            <Goto to={{ view: 'advice', worker }}>Advice</Goto>
            <Goto to={{ view: 'timeline', worker, step }}>Timeline</Goto>
            <Goto
              to={{
                options: withOptions(location.options, { tab: 'collectives', of: worker }),
              }}
            >
              Collectives
            </Goto>
          </p>
        </>
      )}
    </li>
  );
}

/** The ranks that are late to collectives, with delay and cause. */
export function Stragglers({ summary }: { readonly summary: Distributed }): ReactNode {
  const { location } = useNavigation();
  const { stragglers } = summary;
  const late = stragglers.filter((straggler) => straggler.is_straggler);
  const shown = stragglers.slice(0, Math.max(SHOWN, late.length));
  const barNs = Math.max(0, ...shown.map((straggler) => delayNs(straggler) ?? 0));
  return (
    <Card
      className="stragglers"
      label="Stragglers"
      title={
        summary.straggler_count > 0 ? plural(summary.straggler_count, 'straggler') : 'No straggler'
      }
      help="Mean lateness to collectives compared with the median rank, in the group in which it is least late; for a straggler whose whole group is late, its excess work"
      note={
        shown[0]?.found_by === 'own work' ? 'excess work, or lateness' : 'lateness to collectives'
      }
    >
      {shown.length === 0 ? (
        <p className="muted">
          Inconclusive: the ranks share no collective that makes every rank wait.
        </p>
      ) : (
        <ol>
          {shown.map((straggler) => (
            <Item
              key={straggler.worker}
              straggler={straggler}
              isSelected={location.worker === straggler.worker}
              barNs={barNs}
            />
          ))}
        </ol>
      )}
      {late.length === 0 && shown.length > 0 && (
        <p className="muted">
          No rank is late to a significant degree (modified z-score above 3.5, and at least 1 % of a
          step); these are the latest.
        </p>
      )}
    </Card>
  );
}
