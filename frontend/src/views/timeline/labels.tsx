import { type CSSProperties, type KeyboardEvent, type ReactNode, useState } from 'react';
import { count, plural, quantityExact, share } from '../../core/format';
import { Icon } from '../../widgets/icon';
import type { Lane, Layout } from './layout';

export interface TrackActions {
  readonly toggle: (id: number) => void;
  readonly pin: (id: number) => void;
  readonly hide: (id: number) => void;
  readonly moveBy: (id: number, by: -1 | 1) => void;
  readonly moveTo: (id: number, onto: number) => void;
  /** Lists the visible slices of the track. */
  readonly list: (id: number) => void;
}

interface LabelProps {
  readonly lane: Lane;
  readonly wholeNs: number;
  readonly actions: TrackActions;
  readonly isPinned: boolean;
  readonly isReachable: boolean;
  readonly onReach: () => void;
}

/** The tooltip of a track. */
function titleOf({ track }: Lane, wholeNs: number): string {
  const lines = [track.label, track.detail];
  if (track.event_count !== null && track.kind !== 'group') {
    lines.push(plural(track.event_count, 'event'));
  }
  if (track.busy_ns !== null && track.busy_ns > 0) {
    lines.push(
      `busy ${quantityExact(track.busy_ns, 'ns')}, ${share(track.busy_ns / wholeNs)} of the window`,
    );
  }
  return lines.filter((line) => line !== '').join('\n');
}

function Busy({ lane, wholeNs }: Pick<LabelProps, 'lane' | 'wholeNs'>): ReactNode {
  const { busy_ns, kind } = lane.track;
  if (busy_ns === null || busy_ns === 0 || kind === 'group' || kind === 'steps') return null;
  return <span className="track-busy">{share(busy_ns / wholeNs)}</span>;
}

function Buttons({ lane, actions, isPinned, isReachable }: LabelProps): ReactNode {
  const { id, label, kind } = lane.track;
  const tabIndex = isReachable ? 0 : -1;
  return (
    <span className="track-buttons">
      {lane.rows > 0 && (
        <button
          type="button"
          tabIndex={tabIndex}
          aria-label={`List the slices of ${label}`}
          title="List visible slices"
          onClick={() => actions.list(id)}
        >
          <Icon name="operators" size={13} />
        </button>
      )}
      {kind !== 'group' && (
        <button
          type="button"
          tabIndex={tabIndex}
          aria-label={`Pin ${label}`}
          aria-pressed={isPinned}
          title={isPinned ? 'Unpin' : 'Pin to the top'}
          onClick={() => actions.pin(id)}
        >
          <Icon name="pin" size={13} />
        </button>
      )}
      <button
        type="button"
        tabIndex={tabIndex}
        aria-label={`Hide ${label}`}
        title="Hide"
        onClick={() => actions.hide(id)}
      >
        <Icon name="close" size={13} />
      </button>
    </span>
  );
}

function Label(props: LabelProps): ReactNode {
  const { lane, wholeNs, actions, isPinned, isReachable, onReach } = props;
  const { track } = lane;
  const onKeyDown = (event: KeyboardEvent): void => {
    const by = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!(by && event.altKey)) return;
    event.preventDefault();
    actions.moveBy(track.id, by === 1 ? 1 : -1);
  };
  const text = (
    <>
      <span className="track-label ellipsis">{track.label}</span>
      {track.detail !== '' && <span className="track-detail ellipsis muted">{track.detail}</span>}
    </>
  );
  return (
    <li
      className={`track-lane track-${lane.kind}`}
      style={{ height: lane.heightPx, paddingLeft: 6 + lane.depth * 10 }}
      title={titleOf(lane, wholeNs)}
      draggable={!isPinned}
      onKeyDown={onKeyDown}
      onFocus={onReach}
      onDragStart={(event) => {
        event.dataTransfer.setData('text/plain', String(track.id));
        event.dataTransfer.effectAllowed = 'move';
      }}
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        actions.moveTo(Number(event.dataTransfer.getData('text/plain')), track.id);
      }}
    >
      <div className="track-head">
        {lane.canOpen ? (
          <button
            type="button"
            className="track-name flex grow"
            data-track={track.id}
            aria-expanded={lane.isOpen}
            tabIndex={isReachable ? 0 : -1}
            onClick={() => actions.toggle(track.id)}
          >
            <Icon name={lane.isOpen ? 'down' : 'chevron'} size={13} />
            {text}
          </button>
        ) : (
          <span className="track-name flex grow track-fixed">{text}</span>
        )}
        <Busy lane={lane} wholeNs={wholeNs} />
        <Buttons {...props} />
      </div>
    </li>
  );
}

interface Props {
  readonly layout: Layout;
  readonly wholeNs: number;
  readonly actions: TrackActions;
}

const MOVES: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1 };

/** The tracks' names with their buttons; Tab reaches one of them, the arrow keys the others. */
export function Labels({ layout, wholeNs, actions }: Props): ReactNode {
  const [reached, setReached] = useState(0);
  const { lanes, pinned } = layout;
  const onKeyDown = (event: KeyboardEvent<HTMLUListElement>): void => {
    const by = event.altKey ? undefined : MOVES[event.key];
    if (by === undefined) return;
    event.preventDefault();
    const next = Math.max(0, Math.min(lanes.length - 1, reached + by));
    setReached(next);
    const row = event.currentTarget.children[next];
    row?.querySelector<HTMLElement>('button')?.focus();
  };
  const at = Math.min(reached, Math.max(0, lanes.length - 1));
  return (
    <div
      className="timeline-labels"
      style={{ '--pinned': `${layout.pinnedPx}px` } as CSSProperties}
    >
      {pinned.length > 0 && (
        <ul className="track-list pinned" aria-label="Pinned tracks">
          {pinned.map((lane) => (
            <Label
              key={lane.track.id}
              lane={lane}
              wholeNs={wholeNs}
              actions={actions}
              isPinned={true}
              isReachable={true}
              onReach={() => undefined}
            />
          ))}
        </ul>
      )}
      <ul
        className="track-list"
        aria-label={`Tracks: ${count(lanes.length)}`}
        onKeyDown={onKeyDown}
      >
        {lanes.map((lane, index) => (
          <Label
            key={lane.track.id}
            lane={lane}
            wholeNs={wholeNs}
            actions={actions}
            isPinned={pinned.some(({ track }) => track.id === lane.track.id)}
            isReachable={index === at}
            onReach={() => setReached(index)}
          />
        ))}
      </ul>
    </div>
  );
}
