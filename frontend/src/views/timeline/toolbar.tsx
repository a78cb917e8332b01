import { type ReactNode, useState } from 'react';
import type { Narrowing } from '../../api/queries';
import { count, duration, instant, plural } from '../../core/format';
import { readChoice, writeChoice } from '../../host/choice';
import { useTyped } from '../../host/use_typed';
import { Button, IconButton } from '../../widgets/button';
import { Icon } from '../../widgets/icon';
import { Menu } from '../../widgets/menu';
import { Segmented } from '../../widgets/segmented';
import type { DragMode } from './gestures';
import type { Layout } from './layout';
import { markName } from './overlay';
import { type Settings, toggledIn } from './settings';
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

interface FilterBoxProps {
  readonly value: string;
  readonly onChange: (text: string) => void;
}

/** Passes the typed text on once typing pauses. */
function FilterBox({ value, onChange }: FilterBoxProps): ReactNode {
  const { typed, type } = useTyped(value, onChange);
  return (
    <input
      type="search"
      aria-label="Filter tracks by name"
      placeholder="Filter tracks"
      spellCheck={false}
      value={typed}
      onChange={(event) => type(event.target.value)}
    />
  );
}

/** Filters the tracks by name and by kind, and restores hidden ones. */
export function TrackFilter({ timeline, settings, layout, change }: FilterProps): ReactNode {
  const kinds = (Object.keys(KINDS) as (keyof typeof KINDS)[]).filter((kind) =>
    timeline.tracks.some((track) => track.kind === kind),
  );
  const isChanged =
    layout.hiddenCount > 0 || settings.order.length > 0 || settings.toggled.length > 0;
  return (
    <div className="timeline-filter">
      <FilterBox value={settings.filter} onChange={(filter) => change({ filter })} />
      <Menu
        label={
          <>
            <Icon name="filter" size={13} />
            {layout.hiddenCount > 0 ? `${count(layout.hiddenCount)} hidden` : 'Tracks'}
          </>
        }
      >
        {kinds.map((kind) => (
          <label key={kind} className="option">
            <input
              type="checkbox"
              checked={!settings.kinds.includes(kind)}
              onChange={() => change({ kinds: toggledIn(settings.kinds, kind) })}
            />
            {KINDS[kind]}
          </label>
        ))}
        <Button
          quiet
          disabled={!isChanged}
          onClick={() => change({ kinds: [], hidden: [], order: [], toggled: [] })}
        >
          Reset tracks
        </Button>
        <p className="menu-note note">
          Drag a track, or press Alt + ↑ ↓ on it, to move it. The link of the page keeps the order.
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

/** Marks a time, and lists the marked times with their distances. */
export function Marks(props: MarksProps): ReactNode {
  return (
    <>
      <Button
        quiet
        title="Mark the start of the selected slice, or the middle of the visible range; on a mark: remove it (m)"
        onClick={props.onMark}
      >
        Mark
      </Button>
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
                <Button quiet onClick={() => onGo(mark)}>
                  {markName(at)}
                </Button>
              </th>
              <td className="number">{instant(mark)}</td>
              <td className="muted">
                {at > 0 &&
                  `${duration(Math.abs(mark - (marks[at - 1] ?? 0)))} from ${markName(at - 1)}`}
              </td>
              <td>
                <IconButton
                  icon="close"
                  size={13}
                  label={`Remove mark ${markName(at)}`}
                  onClick={() => change({ marks: marks.filter((other) => other !== mark) })}
                />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Menu>
  );
}

const DRAG_MODES = [
  { id: 'select', label: 'Select', title: 'Dragging selects an area; hold Space or Shift to pan' },
  { id: 'pan', label: 'Pan', title: 'Dragging pans; hold Shift to select an area' },
] as const;
const DRAG_CHOICE = 'timeline.drag';

/** What dragging does, in local storage. */
export function useDragMode(): readonly [DragMode, (mode: DragMode) => void] {
  const [mode, setMode] = useState<DragMode>(() =>
    readChoice(DRAG_CHOICE) === 'pan' ? 'pan' : 'select',
  );
  const choose = (next: DragMode): void => {
    setMode(next);
    writeChoice(DRAG_CHOICE, next === 'pan' ? next : null);
  };
  return [mode, choose];
}

interface DragProps {
  readonly mode: DragMode;
  readonly onChoose: (mode: DragMode) => void;
}

export function DragChoice({ mode, onChoose }: DragProps): ReactNode {
  return (
    <Segmented label="Drag" isLabelled segments={DRAG_MODES} value={mode} onChoose={onChoose} />
  );
}

interface ZoomProps {
  readonly zoomBy: (factor: number) => void;
  /** Null without a selection. */
  readonly fitSelection: (() => void) | null;
  readonly fitAll: () => void;
}

export function ZoomButtons({ zoomBy, fitSelection, fitAll }: ZoomProps): ReactNode {
  return (
    <>
      <Button quiet square aria-label="Zoom in" title="Zoom in (w)" onClick={() => zoomBy(0.5)}>
        +
      </Button>
      <Button quiet square aria-label="Zoom out" title="Zoom out (s)" onClick={() => zoomBy(2)}>
        −
      </Button>
      <Button
        quiet
        title="Zoom to the selected area or slice (f)"
        disabled={fitSelection === null}
        onClick={() => fitSelection?.()}
      >
        Fit selection
      </Button>
      <Button quiet title="The whole trace (0)" onClick={fitAll}>
        Fit all
      </Button>
    </>
  );
}

interface TimeChipProps {
  readonly narrowing: Narrowing | null | undefined;
  readonly onFit: () => void;
}

/** Zooms to the step or time that all views are filtered to. */
export function TimeChip({ narrowing, onFit }: TimeChipProps): ReactNode {
  if (!narrowing) return null;
  return (
    <Button quiet title="Zoom to this range" onClick={onFit}>
      Fit {narrowing.label}
    </Button>
  );
}
