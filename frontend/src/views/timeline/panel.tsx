/** Below the tracks: the selection, an area, hits, findings, and what is in sight as a table. */
import { type PointerEvent, type ReactNode, useRef } from 'react';
import type { Outcome, TimelineSlice } from '../../api/types.gen';
import { useNavigation } from '../../state/navigation';
import { Icon } from '../../widgets/icon';
import { type Tab, Tabs } from '../../widgets/tabs';
import { type AreaSums, AreaTab } from './area';
import { FindingsTab } from './findings';
import type { Found } from './hits';
import { ListedTab } from './listed';
import type { Picked } from './pick';
import { SearchTab } from './search';
import { SelectionTab } from './selection';
import type { Settings, Tab as TabId } from './settings';
import type { Viewer } from './viewer';
import type { Hit, Timeline } from './wire';

interface Props {
  readonly trace: string;
  /** Run, worker and span, for the names of exports. */
  readonly recording: readonly string[];
  readonly timeline: Timeline;
  readonly names: readonly string[];
  readonly viewer: Viewer;
  readonly settings: Settings;
  readonly change: (patch: Partial<Settings>) => void;
  readonly chosen: {
    readonly details: TimelineSlice | undefined;
    readonly error: Error | null;
    readonly picked: Picked | null;
    readonly merged: Picked | null;
    readonly select: (event: number | null) => void;
  };
  readonly isChosen: boolean;
  readonly found: Found;
  readonly findings: readonly Outcome[] | undefined;
  readonly listed: number | null;
  readonly onListed: (track: number) => void;
  readonly onHit: (hit: Hit) => void;
  readonly onHover: (finding: Outcome | null) => void;
  readonly onFinding: (finding: Outcome) => void;
  readonly onFit: () => void;
  readonly sums: AreaSums;
}

const LEAST_PX = 90;

/** Drags the panel's upper edge. */
function Grip(): ReactNode {
  const from = useRef<{ readonly y: number; readonly heightPx: number } | null>(null);
  const panelOf = (event: PointerEvent<HTMLElement>): HTMLElement | null =>
    event.currentTarget.closest<HTMLElement>('.timeline-panel');
  const end = (): void => {
    from.current = null;
  };
  return (
    <div
      className="panel-grip"
      aria-hidden="true"
      onPointerDown={(event) => {
        if (event.button !== 0) return;
        event.currentTarget.setPointerCapture(event.pointerId);
        from.current = { y: event.clientY, heightPx: panelOf(event)?.clientHeight ?? 0 };
      }}
      onPointerMove={(event) => {
        if (!from.current) return;
        const heightPx = from.current.heightPx + from.current.y - event.clientY;
        panelOf(event)?.style.setProperty('--panel', `${Math.max(LEAST_PX, heightPx)}px`);
      }}
      onPointerUp={end}
      onPointerCancel={end}
    />
  );
}

function tabsOf({ findings, found }: Props, search: string): [Tab<TabId>, ...Tab<TabId>[]] {
  return [
    { id: 'selection', label: 'Selection' },
    { id: 'area', label: 'Area' },
    { id: 'search', label: 'Search', count: search === '' ? undefined : found.page?.total },
    { id: 'findings', label: 'Findings', count: findings?.length },
    { id: 'table', label: 'Listed', title: 'What is in sight on a track, as a table' },
  ];
}

export function Panel(props: Props): ReactNode {
  const { trace, timeline, names, viewer, settings, change, chosen, findings, found } = props;
  const { location, go } = useNavigation();
  const selected = props.isChosen ? location.event : null;
  if (settings.isPanelShut) {
    return (
      <div className="timeline-panel is-shut">
        <button
          type="button"
          className="button quiet"
          onClick={() => change({ isPanelShut: false })}
        >
          Show details
        </button>
      </div>
    );
  }
  const bodies: Readonly<Record<TabId, () => ReactNode>> = {
    selection: () => (
      <SelectionTab
        details={chosen.details}
        error={chosen.error}
        picked={chosen.picked}
        merged={chosen.merged}
        isChosen={props.isChosen}
        names={names}
        timeline={timeline}
        acts={{
          select: chosen.select,
          fit: props.onFit,
          zoomTo: (range) => viewer.fit(range),
        }}
      />
    ),
    area: () => (
      <AreaTab
        trace={trace}
        recording={props.recording}
        timeline={timeline}
        area={settings.area}
        sort={location.sort}
        onSort={(sort) => go({ sort }, 'replace')}
        sums={props.sums}
        onNarrow={() => {
          const { area } = settings;
          if (area) go({ time: { startNs: area.start, endNs: area.end } }, 'replace');
        }}
        onClear={() => change({ area: null })}
      />
    ),
    search: () => (
      <SearchTab
        search={location.search}
        recording={props.recording}
        found={found}
        timeline={timeline}
        selected={selected}
        onSelect={props.onHit}
      />
    ),
    findings: () => (
      <FindingsTab
        findings={findings}
        open={location.open}
        onHover={props.onHover}
        onChoose={props.onFinding}
      />
    ),
    table: () => (
      <ListedTab
        trace={trace}
        timeline={timeline}
        viewer={viewer}
        track={props.listed}
        onTrack={props.onListed}
        selected={selected}
        onSelect={props.onHit}
      />
    ),
  };
  // Where there is nothing to say the tracks have the room.
  const isQuiet = settings.tab === null && !props.isChosen;
  return (
    <section
      className={isQuiet ? 'timeline-panel is-quiet' : 'timeline-panel'}
      aria-label="Details"
    >
      <Grip />
      <Tabs
        label="Details of the timeline"
        tabs={tabsOf(props, location.search)}
        actions={
          <button
            type="button"
            className="button quiet square"
            aria-label="Hide the details"
            onClick={() => change({ isPanelShut: true })}
          >
            <Icon name="close" size={14} />
          </button>
        }
      >
        {(tab) => bodies[tab]()}
      </Tabs>
    </section>
  );
}
