import { type ReactNode, useMemo } from 'react';
import type { CollectiveMember, CollectiveRanks, CollectiveRef } from '../../api/types.gen';
import { bytes, count, duration, quantity, quantityExact, rate } from '../../core/format';
import { useNavigation } from '../../state/navigation';
import { withOptions } from '../../state/option';
import type { Selection } from '../../state/selection';
import { Button } from '../../widgets/button';
import { type Fact, Facts } from '../../widgets/facts';
import { Goto } from '../../widgets/goto';
import { Loaded } from '../../widgets/loaded';
import { type Segment, useSegments } from '../../widgets/segmented';
import { Windowed } from '../../widgets/windowed';
import { useRanksQuery } from './queries';
import { capital, fillOfPart, kindName, rankName } from './ranks';

const ROW_PX = 20;
type Order = 'rank' | 'last';

const ORDERS: readonly Segment<Order>[] = [
  { id: 'rank', label: 'By rank' },
  { id: 'last', label: 'Last first', title: 'The rank that arrived last first' },
];

/** A collective in the URL, by one of its members: `rank0:123`. */
export const refText = ({ worker, event }: CollectiveRef): string => `${worker}:${event}`;

export function refFrom(text: string | undefined): CollectiveRef | null {
  const match = /^(.*):(\d{1,15})$/.exec(text ?? '');
  return match ? { worker: match[1] ?? '', event: Number(match[2]) } : null;
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

/** One rank: waiting from its arrival until that of the last, then the transfer. */
function MemberRow({ member, lengthNs }: RowProps): ReactNode {
  const { start_ns, duration_ns, wait_ns, is_last } = member;
  const percent = (ns: number): string => `${(ns / Math.max(1, lengthNs)) * 100}%`;
  const text = `arrived at +${duration(start_ns)}, waited ${duration(wait_ns)}, transfer ${duration(duration_ns - wait_ns)}${is_last ? ', arrived last' : ''}`;
  const title = `${capital(rankName(member))}${member.host ? `, ${member.host}` : ''}: ${text}\nDuration ${quantityExact(duration_ns, 'ns')}, exposed ${duration(member.exposed_ns)}`;
  return (
    <div className={is_last ? 'member is-last' : 'member'} title={title}>
      <Goto
        to={{ view: 'timeline', worker: member.worker, event: member.event }}
        className="member-name ellipsis"
        title="Show in the timeline of this rank"
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
      <span className="member-note note">{is_last ? 'last' : duration(wait_ns)}</span>
      <span className="visually-hidden">{text}</span>
    </div>
  );
}

function alignmentNote({ aligned_by, error_ns, members, matched_by }: CollectiveRanks): string {
  if (members.length < 2) return 'Only this rank recorded it, so waiting is unknown.';
  const matched =
    matched_by === 'sequence'
      ? 'Ranks are matched by torch’s sequence numbers'
      : 'Ranks are matched by order within group, kind and size';
  if (aligned_by === 'clocks') {
    return `${matched}; starts are on the aligned clock${error_ns ? `, with an error of up to ${duration(error_ns)}` : ''}.`;
  }
  return `${matched}; their clocks could not be aligned, so all ranks are drawn leaving at the same time${error_ns === null ? '' : ` (accurate to about ${duration(error_ns)})`}.`;
}

function factsOf(collective: CollectiveRanks): Fact[] {
  const { group, description, role, message_bytes, members, expected_count } = collective;
  const { bus_bytes_per_second: bandwidth } = collective;
  return [
    ['Group', [description || group || '–', role].filter(Boolean).join(', ')],
    ['Size', message_bytes === null ? '–' : `${bytes(message_bytes)} ${collective.dtype}`],
    ['Step', collective.step === null ? '–' : count(collective.step)],
    ['Transfer', quantity(collective.transfer_ns, 'ns')],
    ['Total waiting', duration(collective.wait_ns)],
    ['Bus bandwidth', bandwidth === null ? '–' : rate(bandwidth)],
    [
      'Ranks',
      `${count(members.length)}${expected_count === null ? '' : ` of ${count(expected_count)}`}`,
    ],
    ['Missing', collective.missing_ranks || 'none'],
  ];
}

function Steps({ collective }: { readonly collective: CollectiveRanks }): ReactNode {
  const { location, go } = useNavigation();
  const button = (label: string, to: CollectiveRef | null): ReactNode => (
    <Button
      quiet
      disabled={to === null}
      onClick={() =>
        to && go({ options: withOptions(location.options, { at: refText(to) }) }, 'replace')
      }
    >
      {label}
    </Button>
  );
  return (
    <div className="collective-steps flex">
      {button('Previous', collective.before)}
      <span className="muted">
        {count(collective.place)} of {count(collective.alike_count)} of its kind
      </span>
      {button('Next', collective.after)}
    </div>
  );
}

function Ranks({ collective }: { readonly collective: CollectiveRanks }): ReactNode {
  const [order, orders] = useSegments<Order>('members', {
    label: 'Order of ranks',
    segments: ORDERS,
  });
  const members = useMemo(
    () => orderedMembers(collective.members, order),
    [collective.members, order],
  );
  const last = members.findIndex((member) => member.is_last);
  return (
    <>
      <div className="member-head flex">
        <span className="inline">
          <span className="swatch" style={{ background: fillOfPart('waiting') }} /> waiting
        </span>
        <span className="inline">
          <span className="swatch" style={{ background: fillOfPart('transfer') }} /> transfer
        </span>
        <span className="space" />
        {orders}
      </div>
      <div className="member-axis between note" aria-hidden="true">
        <span>0</span>
        <span>{duration(collective.length_ns / 2)}</span>
        <span>{duration(collective.length_ns)}</span>
      </div>
      <div className="members">
        <Windowed
          count={members.length}
          rowPx={ROW_PX}
          active={last}
          render={(at) => {
            const member = members[at];
            return member && <MemberRow member={member} lengthNs={collective.length_ns} />;
          }}
        />
      </div>
      <p className="muted">{alignmentNote(collective)}</p>
    </>
  );
}

interface Props {
  readonly selection: Selection;
  readonly of: CollectiveRef;
}

/** One collective on all its ranks: arrival, waiting, and the last one. */
export function CollectivePanel({ selection, of }: Props): ReactNode {
  const { location } = useNavigation();
  const { worker, event } = refFrom(location.options.at) ?? of;
  const query = useRanksQuery(selection, 'distributed/collective', {
    worker,
    event,
  });
  return (
    <div className={query.isPlaceholderData ? 'collective stale' : 'collective'}>
      <Loaded query={query} what="This collective">
        {(collective) => (
          <>
            <div className="collective-title wrap">
              <strong>{kindName(collective.kind)}</strong> <Steps collective={collective} />
            </div>
            <Ranks collective={collective} />
            <Facts className="collective-facts facts" facts={factsOf(collective)} />
          </>
        )}
      </Loaded>
    </div>
  );
}
