import { type ReactNode, useMemo } from 'react';
import type { CollectiveMember, CollectiveRanks, CollectiveRef } from '../../api/types.gen';
import { bytes, count, duration, quantity, quantityExact, rate } from '../../core/format';
import { useNavigation } from '../../state/navigation';
import { useOption, withOption } from '../../state/option';
import type { Selection } from '../../state/selection';
import { Goto } from '../../widgets/goto';
import { Loaded } from '../../widgets/loaded';
import { Segmented } from '../../widgets/segmented';
import { Windowed } from '../../widgets/windowed';
import { fillOfPart } from './colours';
import { capital, kindName, rankName } from './names';
import { useRanksAnswer } from './queries';

const ROW_PX = 20;
type Order = 'rank' | 'last';

const ORDERS: readonly { id: Order; label: string; title: string }[] = [
  { id: 'rank', label: 'By rank', title: 'Rank by rank' },
  { id: 'last', label: 'Last first', title: 'Whoever came last first' },
];

/** A collective in the URL, by one of its members: `rank0:123`. */
export const refText = ({ worker, event }: CollectiveRef): string => `${worker}:${event}`;

export function refFrom(text: string | undefined): CollectiveRef | null {
  const found = /^(.*):(\d{1,15})$/.exec(text ?? '');
  return found ? { worker: found[1] ?? '', event: Number(found[2]) } : null;
}

export function orderedMembers(
  members: readonly CollectiveMember[],
  order: Order,
): CollectiveMember[] {
  if (order === 'rank') return [...members];
  return [...members].sort((a, b) => a.duration_ns - b.duration_ns);
}

interface RowProps {
  readonly member: CollectiveMember;
  readonly lengthNs: number;
}

/** One rank: from when it came until the others had, and the transfer after that. */
function MemberRow({ member, lengthNs }: RowProps): ReactNode {
  const { start_ns, duration_ns, wait_ns, is_last } = member;
  const percent = (ns: number): string => `${(ns / Math.max(1, lengthNs)) * 100}%`;
  const words = `came at +${duration(start_ns)}, waited ${duration(wait_ns)}, transfer ${duration(duration_ns - wait_ns)}${is_last ? ', came last' : ''}`;
  const title = `${capital(rankName(member))}${member.host ? `, ${member.host}` : ''}: ${words}\nDuration ${quantityExact(duration_ns, 'ns')}, exposed ${duration(member.exposed_ns)}`;
  return (
    <div className={is_last ? 'member is-last' : 'member'} title={title}>
      <Goto
        to={{ view: 'timeline', worker: member.worker, event: member.event }}
        className="member-name"
        title="Show it in this rank’s timeline"
      >
        {rankName(member)}
      </Goto>
      <span className="member-track" aria-hidden="true">
        <span
          style={{
            left: percent(start_ns),
            width: percent(wait_ns),
            background: fillOfPart('waiting'),
          }}
        />
        <span
          style={{
            left: percent(start_ns + wait_ns),
            width: percent(duration_ns - wait_ns),
            background: fillOfPart('transfer'),
          }}
        />
      </span>
      <span className="member-note">{is_last ? 'last' : duration(wait_ns)}</span>
      <span className="visually-hidden">{words}</span>
    </div>
  );
}

function alignedWords({ aligned_by, error_ns, members, matched_by }: CollectiveRanks): string {
  if (members.length < 2)
    return 'It was found on this rank only: nothing tells who waited for whom.';
  const matched =
    matched_by === 'sequence'
      ? 'Its ranks were matched by torch’s sequence numbers'
      : 'Its ranks were matched by their order within group, kind and size';
  if (aligned_by === 'clocks') {
    const bound =
      error_ns === null || error_ns === 0 ? '' : `, which may be wrong by ${duration(error_ns)}`;
    return `${matched}; starts are on the aligned clock${bound}.`;
  }
  return `${matched}; their clocks could not be aligned, so they are drawn as if all had left at once${error_ns === null ? '' : `, which is right to about ${duration(error_ns)}`}.`;
}

function Facts({ answer }: { readonly answer: CollectiveRanks }): ReactNode {
  const facts: readonly (readonly [string, string])[] = [
    ['Group', [answer.description || answer.group || '–', answer.role].filter(Boolean).join(', ')],
    [
      'Size',
      answer.message_bytes === null ? '–' : `${bytes(answer.message_bytes)} ${answer.dtype}`,
    ],
    ['Step', answer.step === null ? '–' : count(answer.step)],
    ['Transfer', quantity(answer.transfer_ns, 'ns')],
    ['Waited together', duration(answer.wait_ns)],
    [
      'Bus bandwidth',
      answer.bus_bytes_per_second === null ? '–' : rate(answer.bus_bytes_per_second),
    ],
    [
      'Ranks',
      `${count(answer.members.length)}${answer.expected_count === null ? '' : ` of ${count(answer.expected_count)}`}`,
    ],
    ['Missing', answer.missing_ranks || 'none'],
  ];
  return (
    <dl className="collective-facts">
      {facts.map(([label, value]) => (
        <div key={label}>
          <dt>{label}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function Steps({ answer }: { readonly answer: CollectiveRanks }): ReactNode {
  const { location, go } = useNavigation();
  const show = (to: CollectiveRef | null): void => {
    if (to) go({ options: withOption(location.options, 'at', refText(to)) }, 'replace');
  };
  return (
    <div className="collective-steps">
      <button
        type="button"
        className="button quiet"
        disabled={answer.before === null}
        onClick={() => show(answer.before)}
      >
        Previous
      </button>
      <span className="muted">
        {count(answer.place)} of {count(answer.alike_count)} alike
      </span>
      <button
        type="button"
        className="button quiet"
        disabled={answer.after === null}
        onClick={() => show(answer.after)}
      >
        Next
      </button>
    </div>
  );
}

function Ranks({ answer }: { readonly answer: CollectiveRanks }): ReactNode {
  const [order, setOrder] = useOption<Order>('members', 'rank', ['rank', 'last']);
  const members = useMemo(() => orderedMembers(answer.members, order), [answer.members, order]);
  const last = members.findIndex((member) => member.is_last);
  return (
    <>
      <div className="member-head">
        <span className="legend-entry">
          <span className="swatch" style={{ background: fillOfPart('waiting') }} /> waits
        </span>
        <span className="legend-entry">
          <span className="swatch" style={{ background: fillOfPart('transfer') }} /> transfer
        </span>
        <span className="space" />
        <Segmented label="Order of ranks" segments={ORDERS} value={order} onChoose={setOrder} />
      </div>
      <div className="member-axis" aria-hidden="true">
        <span>0</span>
        <span>{duration(answer.length_ns / 2)}</span>
        <span>{duration(answer.length_ns)}</span>
      </div>
      <div className="members">
        <Windowed
          count={members.length}
          rowPx={ROW_PX}
          active={last}
          render={(at) => {
            const member = members[at];
            return member && <MemberRow member={member} lengthNs={answer.length_ns} />;
          }}
        />
      </div>
      <p className="muted">{alignedWords(answer)}</p>
    </>
  );
}

interface Props {
  readonly selection: Selection;
  readonly of: CollectiveRef;
}

/** One collective over all its ranks: who came when, who waited, who was last. */
export function CollectivePanel({ selection, of }: Props): ReactNode {
  const { location } = useNavigation();
  const { worker, event } = refFrom(location.options.at) ?? of;
  const query = useRanksAnswer<CollectiveRanks>(selection, 'distributed/collective', {
    worker,
    event,
  });
  return (
    <div className={query.isPlaceholderData ? 'collective stale' : 'collective'}>
      <Loaded query={query} what="This collective">
        {(answer) => (
          <>
            <div className="collective-title">
              <strong>{kindName(answer.kind)}</strong> <Steps answer={answer} />
            </div>
            <Ranks answer={answer} />
            <Facts answer={answer} />
          </>
        )}
      </Loaded>
    </div>
  );
}
