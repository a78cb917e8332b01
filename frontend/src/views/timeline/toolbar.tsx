import { type ReactNode, useEffect, useState } from 'react';
import type { Narrowing } from '../../api/queries';
import { count, duration, instant, plural } from '../../core/format';
import { Icon } from '../../widgets/icon';
import { Menu } from '../../widgets/menu';
import type { Layout } from './layout';
import { markName } from './overlay';
import { type Settings, toggledIn } from './settings';
import { Swatch } from './slice_words';
import type { Timeline, TrackKind } from './wire';

const KINDS: Readonly<Record<Exclude<TrackKind, 'group'>, string>> = {
  steps: 'Steps',
  stream: 'Device streams',
  annotations: 'Device annotations',
  idle: 'Idle causes',
  counter: 'Counters',
  thread: 'Threads',
  other: 'Others',
};

type Change = (patch: Partial<Settings>) => void;

interface FilterProps {
  readonly timeline: Timeline;
  readonly settings: Settings;
  readonly layout: Layout;
  readonly change: Change;
}

const TYPING_MS = 150;

function Words({
  value,
  onChange,
}: {
  value: string;
  onChange: (text: string) => void;
}): ReactNode {
  const [typed, setTyped] = useState(value);
  useEffect(() => setTyped(value), [value]);
  useEffect(() => {
    if (typed === value) return undefined;
    const timer = setTimeout(() => onChange(typed), TYPING_MS);
    return () => clearTimeout(timer);
  }, [typed, value, onChange]);
  return (
    <input
      type="search"
      aria-label="Show tracks whose name has"
      placeholder="Filter tracks"
      spellCheck={false}
      value={typed}
      onChange={(event) => setTyped(event.target.value)}
    />
  );
}

/** Which tracks are shown: by words, by kind, and those that were hidden. */
export function TrackFilter({ timeline, settings, layout, change }: FilterProps): ReactNode {
  const kinds = (Object.keys(KINDS) as (keyof typeof KINDS)[]).filter((kind) =>
    timeline.tracks.some((track) => track.kind === kind),
  );
  const isChanged =
    layout.hiddenCount > 0 || settings.order.length > 0 || settings.toggled.length > 0;
  return (
    <div className="timeline-filter">
      <Words value={settings.filter} onChange={(filter) => change({ filter })} />
      <Menu
        label={
          <>
            <Icon name="filter" size={13} />
            {layout.hiddenCount > 0 ? `${count(layout.hiddenCount)} hidden` : 'Tracks'}
          </>
        }
      >
        {kinds.map((kind) => (
          <label key={kind} className="menu-item">
            <input
              type="checkbox"
              checked={!settings.kinds.includes(kind)}
              onChange={() => change({ kinds: toggledIn(settings.kinds, kind) })}
            />
            {KINDS[kind]}
          </label>
        ))}
        <button
          type="button"
          className="button quiet"
          disabled={!isChanged}
          onClick={() => change({ kinds: [], hidden: [], order: [], toggled: [] })}
        >
          Show the usual tracks
        </button>
        <p className="menu-note">Colours; a name has its own shade of its category’s</p>
        <ul className="legend-list">
          {timeline.categories.map(({ id, label }) => (
            <li key={id}>
              <Swatch category={id} name="" />
              {label}
            </li>
          ))}
        </ul>
        <p className="menu-note">
          Drag a track, or press Alt + ↑ ↓ on it, to move it. The choice is part of the link.
        </p>
      </Menu>
    </div>
  );
}

interface MarksProps {
  readonly marks: readonly number[];
  readonly change: Change;
  readonly onMark: () => void;
  readonly onGo: (mark: number) => void;
}

/** Marks a time; the marked times, and how far apart they are. */
export function Marks(props: MarksProps): ReactNode {
  return (
    <>
      <button
        type="button"
        className="button quiet"
        title="Mark where the selected slice begins, or the middle of what is in sight; at a mark: take it away (m)"
        onClick={props.onMark}
      >
        Mark
      </button>
      {props.marks.length > 0 && <MarkList {...props} />}
    </>
  );
}

function MarkList({ marks, change, onGo }: MarksProps): ReactNode {
  return (
    <Menu label={plural(marks.length, 'mark')}>
      <table className="marks-table">
        <caption className="visually-hidden">Marked times</caption>
        <tbody>
          {marks.map((mark, at) => (
            <tr key={mark}>
              <th scope="row">
                <button type="button" className="button quiet" onClick={() => onGo(mark)}>
                  {markName(at)}
                </button>
              </th>
              <td className="number">{instant(mark)}</td>
              <td className="muted">
                {at > 0 &&
                  `${duration(Math.abs(mark - (marks[at - 1] ?? 0)))} from ${markName(at - 1)}`}
              </td>
              <td>
                <button
                  type="button"
                  className="button quiet square"
                  aria-label={`Remove mark ${markName(at)}`}
                  onClick={() => change({ marks: marks.filter((each) => each !== mark) })}
                >
                  <Icon name="close" size={13} />
                </button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Menu>
  );
}

interface ZoomProps {
  readonly zoomBy: (factor: number) => void;
  readonly fitAll: () => void;
}

export function ZoomButtons({ zoomBy, fitAll }: ZoomProps): ReactNode {
  return (
    <>
      <button
        type="button"
        className="button quiet square"
        aria-label="Come nearer"
        title="Come nearer (w)"
        onClick={() => zoomBy(0.5)}
      >
        +
      </button>
      <button
        type="button"
        className="button quiet square"
        aria-label="Go away"
        title="Go away (s)"
        onClick={() => zoomBy(2)}
      >
        −
      </button>
      <button
        type="button"
        className="button quiet"
        title="The whole recording (0)"
        onClick={fitAll}
      >
        Fit all
      </button>
    </>
  );
}

/** What all views are narrowed to, and a way out of it. */
export function TimeChip({
  narrowing,
  onFit,
}: {
  readonly narrowing: Narrowing | null | undefined;
  readonly onFit: () => void;
}): ReactNode {
  if (!narrowing) return null;
  return (
    <button type="button" className="button quiet" title="Show this part" onClick={onFit}>
      Fit {narrowing.label}
    </button>
  );
}
