/** Below the tracks: tabs with the selection, an area, search results, findings, and the visible slices as a table. */
import { type PointerEvent, type ReactNode, useRef } from 'react';
import type { Outcome } from '../../api/types.gen';
import { useNavigation } from '../../state/navigation';
import { Button, IconButton } from '../../widgets/button';
import { type Tab, Tabs } from '../../widgets/tabs';
import { AreaTab, type Summarize } from './area';
import { FindingsTab } from './findings';
import type { HitSearch } from './hits';
import { SearchTab } from './search';
import { SelectionTab } from './selection';
import type { Settings, Tab as TabId } from './settings';
import type { SelectedSlice } from './use_selected_slice';
import type { Viewer } from './viewer';
import { VisibleTab } from './visible_slices';
import type { Hit, Timeline } from './wire';

interface Props {
  readonly trace: string;
  /** Run, worker and span, for the names of exports. */
  readonly traceName: readonly string[];
  readonly timeline: Timeline;
  readonly names: readonly string[];
  readonly viewer: Viewer;
  readonly settings: Settings;
  readonly change: (patch: Partial<Settings>) => void;
  readonly selected: SelectedSlice;
  readonly hits: HitSearch;
  readonly findings: readonly Outcome[] | undefined;
  readonly listedTrack: number | null;
  readonly onListedTrack: (track: number) => void;
  readonly onHit: (hit: Hit) => void;
  readonly onHover: (finding: Outcome | null) => void;
  readonly onFinding: (finding: Outcome) => void;
  readonly onFit: () => void;
  readonly summarize: Summarize;
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

function tabsOf({ findings, hits }: Props, search: string): [Tab<TabId>, ...Tab<TabId>[]] {
  return [
    { id: 'selection', label: 'Selection' },
    { id: 'area', label: 'Area' },
    { id: 'search', label: 'Search', count: search === '' ? undefined : hits.page?.total },
    { id: 'findings', label: 'Findings', count: findings?.length },
    { id: 'table', label: 'Visible slices', title: 'The visible slices of a track as a table' },
  ];
}

export function Panel(props: Props): ReactNode {
  const { timeline, viewer, settings, change, selected, onHit } = props;
  const { location, go } = useNavigation();
  if (settings.isPanelShut) {
    return (
      <div className="timeline-panel is-shut">
        <Button quiet onClick={() => change({ isPanelShut: false })}>
          Show details
        </Button>
      </div>
    );
  }
  const { area } = settings;
  const narrow = (): void => {
    if (area) go({ time: { startNs: area.start, endNs: area.end } }, 'replace');
  };
  const bodies: Readonly<Record<TabId, () => ReactNode>> = {
    selection: () => (
      <SelectionTab
        selected={selected}
        names={props.names}
        timeline={timeline}
        actions={{
          select: selected.select,
          fit: props.onFit,
          summarize: () => props.summarize.selected?.(),
          zoomTo: (part) => viewer.fit(part),
        }}
      />
    ),
    area: () => (
      <AreaTab
        {...props}
        area={area}
        sort={location.sort}
        onSort={(sort) => go({ sort }, 'replace')}
        onAllTracks={() => area && change({ area: { ...area, tracks: [] } })}
        onNarrow={narrow}
        onClear={() => change({ area: null })}
      />
    ),
    search: () => (
      <SearchTab {...props} search={location.search} selected={location.event} onSelect={onHit} />
    ),
    findings: () => (
      <FindingsTab
        findings={props.findings}
        open={location.open}
        onHover={props.onHover}
        onChoose={props.onFinding}
      />
    ),
    table: () => (
      <VisibleTab
        {...props}
        track={props.listedTrack}
        onTrack={props.onListedTrack}
        selected={location.event}
        onSelect={onHit}
      />
    ),
  };
  // Without a selection the tracks take the space.
  const isQuiet = settings.tab === null && !selected.isSelected;
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
          <IconButton
            icon="close"
            label="Hide the details"
            onClick={() => change({ isPanelShut: true })}
          />
        }
      >
        {(tab) => bodies[tab]()}
      </Tabs>
    </section>
  );
}
