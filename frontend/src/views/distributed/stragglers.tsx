import type { ReactNode } from 'react';
import type { Distributed, Straggler } from '../../api/types.gen';
import { count, duration, plural, quantityExact } from '../../core/format';
import { useNavigation } from '../../state/navigation';
import { withOption } from '../../state/option';
import { Goto } from '../../widgets/goto';
import { Icon } from '../../widgets/icon';
import { withMinus } from './heat/words';
import { capital, rankName, stepRanges } from './names';

const SHOWN = 6;

interface ItemProps {
  readonly straggler: Straggler;
  readonly isChosen: boolean;
  readonly barNs: number;
}

const CAUSES: Readonly<Record<string, string>> = {
  computing: 'It computes longer',
  copies: 'It copies longer',
  'data loading': 'It waits longer for data',
  host: 'Its host is slower',
};

/** By how much it holds the others up: its lateness, or how much longer it works where its whole group is late with it. */
export const heldUpNs = ({ found_by, lateness_ns, own_excess_ns }: Straggler): number | null =>
  found_by === 'own work' ? own_excess_ns : lateness_ns;

function when({ late_steps, since_step, is_straggler }: Straggler): string {
  if (!is_straggler) return '';
  if (since_step !== null) return `since step ${since_step}`;
  return late_steps.length > 0 ? `in steps ${stepRanges(late_steps)}` : '';
}

function Item({ straggler, isChosen, barNs }: ItemProps): ReactNode {
  const { location } = useNavigation();
  const { worker, cause, cause_ns } = straggler;
  const heldUp = heldUpNs(straggler);
  const late = Math.max(0, heldUp ?? 0);
  const step = straggler.late_steps.at(-1) ?? location.step;
  return (
    <li className={straggler.is_straggler ? 'straggler is-late' : 'straggler'}>
      <div className="straggler-head">
        <Goto
          to={{ worker, step: location.step }}
          className="straggler-name"
          current={isChosen}
          title="Choose this rank"
        >
          {straggler.is_straggler && <Icon name="warning" size={15} />}
          {capital(rankName(straggler))}
        </Goto>
        <span className="straggler-when">{when(straggler)}</span>
        <span className="number" title={quantityExact(heldUp, 'ns')}>
          {heldUp === null ? '–' : withMinus(heldUp, 'ns')}
        </span>
      </div>
      <div className="straggler-bar" aria-hidden="true">
        <span style={{ width: `${barNs > 0 ? (late / barNs) * 100 : 0}%` }} />
      </div>
      {straggler.is_straggler && (
        <>
          <p>
            Last to {count(straggler.last_count)} of{' '}
            {plural(straggler.collective_count, 'collective')}; the others together wait{' '}
            {duration(straggler.wait_caused_ns)} a step for it.{' '}
            {cause !== null && cause_ns !== null
              ? `${CAUSES[cause] ?? capital(cause)}: ${duration(cause_ns)} a step.`
              : 'Nothing that was recorded explains it.'}
          </p>
          <p className="straggler-links">
            <Goto to={{ view: 'advice', worker }}>Advice</Goto>
            <Goto to={{ view: 'timeline', worker, step }}>Timeline</Goto>
            <Goto
              to={{
                options: withOption(
                  withOption(location.options, 'tab', 'collectives'),
                  'of',
                  worker,
                ),
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

/** Who comes late to collectives, by how much, and why. */
export function Stragglers({ summary }: { readonly summary: Distributed }): ReactNode {
  const { location } = useNavigation();
  const { stragglers } = summary;
  const late = stragglers.filter((each) => each.is_straggler);
  const shown = stragglers.slice(0, Math.max(SHOWN, late.length));
  const barNs = Math.max(0, ...shown.map((each) => heldUpNs(each) ?? 0));
  return (
    <section className="card stragglers" aria-label="Stragglers">
      <div className="card-head">
        <h2>
          {summary.straggler_count > 0
            ? plural(summary.straggler_count, 'straggler')
            : 'No straggler'}
        </h2>
        <p title="How much later than the median rank it comes to a collective, on average in the group in which it is least late; of a straggler whose whole group comes late with it, how much longer it works">
          {shown[0]?.found_by === 'own work'
            ? 'works longer, or comes late'
            : 'late to a collective'}
        </p>
      </div>
      {shown.length === 0 ? (
        <p className="muted">
          Who comes late cannot be told: no collective that makes every rank wait was found on
          several ranks.
        </p>
      ) : (
        <ol>
          {shown.map((each) => (
            <Item
              key={each.worker}
              straggler={each}
              isChosen={location.worker === each.worker}
              barNs={barNs}
            />
          ))}
        </ol>
      )}
      {late.length === 0 && shown.length > 0 && (
        <p className="muted">
          No rank is late beyond what is usual among them (modified z-score above 3.5, and 1 % of a
          step or more); these came latest.
        </p>
      )}
    </section>
  );
}
