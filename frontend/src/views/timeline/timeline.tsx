/** The timeline: a minimap, a time axis, tracks, and a panel with the details of the selection. */
import { type ReactNode, useCallback, useMemo, useRef, useState } from 'react';
import { useAdvice, useNarrowing } from '../../api/queries';
import type { Outcome } from '../../api/types.gen';
import type { Range } from '../../canvas/viewport';
import { fileName } from '../../core/export';
import { count, duration, plural } from '../../core/format';
import { matcherOf } from '../../core/search';
import { useTheme } from '../../host/theme';
import { useNavigation } from '../../state/navigation';
import type { Selection } from '../../state/selection';
import { ExportMenu } from '../../widgets/export_menu';
import { OpenElsewhere } from '../../widgets/open_elsewhere';
import { toast } from '../../widgets/toast';
import { ViewHeader } from '../../widgets/view_header';
import { legendOf, subtitleOf } from './exported';
import { findingsOf, shownFinding } from './findings';
import { useHits } from './hits';
import { useTimelineKeys } from './keyboard';
import type { TrackActions } from './labels';
import { layoutOf, movedBy, movedTo, withCounterGroup } from './layout';
import { Legend } from './legend';
import { heatRows, Minimap } from './minimap';
import { type Overlay, rangeOf } from './overlay';
import { Panel } from './panel';
import { RankButtons } from './ranks';
import { Ruler } from './ruler';
import { highlightedNames, SearchRow } from './search';
import { type Area, parseSettings, type Settings, toggledIn, withSettings } from './settings';
import { trackLabel } from './slice_labels';
import { stubAt } from './stubs';
import { DragChoice, Marks, TimeChip, TrackFilter, useDragMode, ZoomButtons } from './toolbar';
import { Tracks } from './tracks';
import { linkedTo, useRevealedSlice, useSelectedSlice } from './use_selected_slice';
import { useEngine, useRangeInUrl, useStepInSight } from './use_viewer';
import type { Point } from './viewer';
import type { Hit, SliceDetails, SlicePosition, Timeline } from './wire';

interface Props {
  readonly selection: Selection;
  readonly timeline: Timeline;
  readonly names: readonly string[];
}

const MARK_REACH_PX = 6;

/** The marks with one added at a time; a mark close to that time is removed instead. */
export function marked(marks: readonly number[], timeNs: number, reachNs: number): number[] {
  const near = marks.find((mark) => Math.abs(mark - timeNs) <= reachNs);
  if (near !== undefined) return marks.filter((mark) => mark !== near);
  return [...marks, Math.round(timeNs)].sort((a, b) => a - b);
}

/** The start of a search: the selected slice if it is in sight, else the left edge. */
export function searchedFrom(view: Range, selected: SlicePosition | undefined): number {
  const isInSight =
    selected !== undefined &&
    selected.start_ns < view.end &&
    selected.start_ns + selected.duration_ns >= view.start;
  return Math.max(0, Math.ceil(isInSight ? selected.start_ns : view.start));
}

function useSettings(): readonly [Settings, (patch: Partial<Settings>) => void] {
  const { location, go } = useNavigation();
  const latest = useRef({ options: location.options, go });
  latest.current = { options: location.options, go };
  const settings = useMemo(() => parseSettings(location.options), [location.options]);
  const change = useCallback((patch: Partial<Settings>): void => {
    const options = withSettings(latest.current.options, patch);
    latest.current.options = options;
    latest.current.go({ options }, 'replace');
  }, []);
  return [settings, change];
}

/** What zooming to the selection shows: the area while its tab is shown, else the slice. */
const zoomTarget = ({ area, tab }: Settings, slice: Range | null): Range | null =>
  tab === 'area' ? (area ?? slice) : (slice ?? area);

const announcementOf = (details: SliceDetails | undefined, timeline: Timeline): string =>
  details
    ? `${details.name}, ${duration(details.duration_ns)}, on ${trackLabel(timeline.tracks, details.track)}`
    : '';

function About({ timeline }: { readonly timeline: Timeline }): ReactNode {
  const events = timeline.tracks.reduce((sum, track) => sum + (track.event_count ?? 0), 0);
  return (
    <div className="timeline-about" title={timeline.note}>
      <strong>{duration(timeline.end_ns - timeline.start_ns)}</strong>
      <span>
        {plural(events, 'slice')}
        {timeline.steps.length > 0 && `, ${plural(timeline.steps.length, 'step')}`}
      </span>
    </div>
  );
}

export function TimelineView({ selection, timeline, names }: Props): ReactNode {
  const { run, span } = selection;
  const { trace } = span;
  const traceName = [run.name, selection.worker.name, span.label];
  const picture = useRef<HTMLDivElement>(null);
  const theme = useTheme();
  const { location, go } = useNavigation();
  const [settings, change] = useSettings();
  const narrowing = useNarrowing(trace);
  const { start_ns: fromNs, end_ns: toNs } = narrowing ?? {};
  const time = useMemo<Range | null>(
    () => (fromNs === undefined || toNs === undefined ? null : { start: fromNs, end: toNs }),
    [fromNs, toNs],
  );
  const engine = useEngine(trace, timeline, names, settings.at ?? time);
  const { viewer } = engine;
  useStepInSight(viewer, narrowing === undefined && settings.at === null, time);
  useRangeInUrl(viewer, settings.at, (at) => change({ at }));
  const { pinned, toggled, hidden, kinds, filter, order } = settings;
  const tracks = useMemo(() => withCounterGroup(timeline.tracks), [timeline]);
  const layout = useMemo(
    () => layoutOf({ tracks }, { pinned, toggled, hidden, kinds, filter, order }),
    [tracks, pinned, toggled, hidden, kinds, filter, order],
  );
  const [dragMode, setDragMode] = useDragMode();
  const rows = useMemo(() => heatRows(timeline), [timeline]);

  const selected = useSelectedSlice(trace);
  const { details, picked } = selected;
  const onClicked = useRevealedSlice(viewer, timeline, details, settings, change);
  const selectedTime = details
    ? rangeOf(details)
    : picked && { start: picked.startNs, end: picked.endNs };

  const matcher = useMemo(() => matcherOf(location.search), [location.search]);
  const showHit = (hit: Hit | null): void => {
    if (!hit) return;
    if (hit.event !== null) selected.select(hit.event);
    else viewer.reveal(rangeOf(hit), hit);
  };
  const hits = useHits({
    trace,
    search: location.search,
    selected: location.event,
    fromNs: () => searchedFrom(viewer.goal, details),
    onHit: showHit,
  });
  const isSearching = location.search.trim() !== '';

  const advice = useAdvice(run, trace);
  const findings = advice.data && findingsOf(advice.data.outcomes, trace);
  const [hovered, setHovered] = useState<Outcome | null>(null);
  const finding = hovered ?? findings?.find(({ rule }) => rule === location.open) ?? null;
  const [listedTrack, setListedTrack] = useState<number | null>(null);

  const overlay = useMemo<Overlay>(
    () => ({
      steps: timeline.steps,
      selected: details ?? null,
      picked,
      links: (details?.links ?? []).map((link) => ({
        ...link,
        on: trackLabel(timeline.tracks, link.track),
      })),
      time,
      area: settings.area,
      marks: settings.marks,
      finding: finding && shownFinding(finding),
      highlightedNames: highlightedNames(names, matcher),
    }),
    [timeline, details, picked, time, settings, finding, names, matcher],
  );

  const showTab = (tab: Settings['tab']): Partial<Settings> => ({ tab, isPanelShut: false });
  const gestures = {
    dragMode,
    click: (point: Point): void => {
      const stub = stubAt(viewer.stubs, point);
      const slice = viewer.pickAt(point);
      if (stub) selected.select(stub.link.event);
      else if (slice) {
        selected.pick(slice, onClicked);
        if (settings.tab !== null) change(showTab(null));
      } else {
        selected.select(null);
        if (settings.area) change({ area: null });
      }
    },
    doubleClick: (point: Point): void => {
      const slice = viewer.pickAt(point);
      if (slice) viewer.fit({ start: slice.startNs, end: slice.endNs });
      else viewer.fitAll();
    },
    area: (area: Area): void => change({ area, ...showTab('area') }),
  };
  const trackActions: TrackActions = {
    toggle: (id) => change({ toggled: toggledIn(toggled, id) }),
    pin: (id) => change({ pinned: toggledIn(pinned, id) }),
    hide: (id) =>
      change({ hidden: [...hidden, id], pinned: pinned.filter((other) => other !== id) }),
    moveBy: (id, by) => change({ order: movedBy(tracks, order, { id, by }) }),
    moveTo: (id, onto) => change({ order: movedTo(tracks, order, { id, onto }) }),
    list: (id) => {
      setListedTrack(id);
      change(showTab('table'));
    },
  };
  const target = zoomTarget(settings, selectedTime);
  const fitSelection = (): boolean => {
    if (target) viewer.fit(target);
    return target !== null;
  };
  const moveHit = (by: -1 | 1): boolean => {
    hits.move(by, location.search);
    return isSearching;
  };
  const neighbour = (direction: 'left' | 'right' | 'up' | 'down'): boolean => {
    if (details) selected.request('neighbour', { event: details.event, direction }, showHit);
    return details !== undefined;
  };
  const linked = (by: -1 | 1): boolean => {
    const event = linkedTo(details, by);
    if (event !== null) selected.select(event);
    return event !== null;
  };
  const summarize = (part: Range, tracks: readonly number[]): void => {
    const [start, end] = [Math.max(0, Math.floor(part.start)), Math.ceil(part.end)];
    change({ area: { start, end: Math.max(end, start + 1), tracks }, ...showTab('area') });
  };
  const mark = (pointedNs: number | null): void => {
    const at = pointedNs ?? selectedTime?.start ?? (viewer.view.start + viewer.view.end) / 2;
    change({ marks: marked(settings.marks, Math.max(0, at), MARK_REACH_PX * viewer.nsPerPx) });
  };
  const scroll = (px: number): void => viewer.scrollTo(viewer.scrollPx + px);
  useTimelineKeys({
    w: () => viewer.zoomBy(0.6),
    s: () => viewer.zoomBy(1 / 0.6),
    a: () => viewer.panBy(-0.25),
    d: () => viewer.panBy(0.25),
    ArrowLeft: () => neighbour('left') || viewer.panBy(-0.1),
    ArrowRight: () => neighbour('right') || viewer.panBy(0.1),
    ArrowUp: () => neighbour('up') || scroll(-54),
    ArrowDown: () => neighbour('down') || scroll(54),
    f: fitSelection,
    '0': () => viewer.fitAll(),
    m: () => mark(viewer.pointer && viewer.timeAt(viewer.pointer.x)),
    '[': () => linked(-1),
    ']': () => linked(1),
    n: () => moveHit(1),
    p: () => moveHit(-1),
    Enter: () => {
      if (!(details || picked)) return false;
      change(showTab(null));
      document.querySelector<HTMLElement>('.timeline-panel [role="tab"]')?.focus();
      return true;
    },
    Escape: () => {
      if (selected.isSelected) selected.select(null);
      else if (settings.area) change({ area: null });
      else if (location.open !== null) go({ open: null }, 'replace');
      else return false;
      return true;
    },
  });

  return (
    <div className="full-view column grow timeline">
      <ViewHeader title="Timeline" note={timeline.note === '' ? undefined : timeline.note}>
        <SearchRow
          value={location.search}
          matcher={matcher}
          hits={hits}
          onChange={(search) => go({ search }, 'replace')}
        />
        <RankButtons selection={selection} />
        <TimeChip narrowing={narrowing} onFit={() => time && viewer.fit(time)} />
        <Marks
          marks={settings.marks}
          change={change}
          onMark={() => mark(null)}
          onGo={(at) => viewer.reveal({ start: at, end: at + viewer.nsPerPx * 2 }, null)}
        />
        <ExportMenu
          note="The tracks as shown. The details below export tables: of an area and of search results."
          picture={{
            element: picture,
            title: 'Timeline',
            subtitle: subtitleOf(traceName, settings.at ?? viewer.goal),
            legend: legendOf(engine.palette.drawn(), theme),
            file: fileName([...traceName, 'timeline'], 'png'),
          }}
        />
        <OpenElsewhere selection={selection} />
      </ViewHeader>
      <div className="timeline-bar wrap">
        <Legend engine={engine} />
        <div className="view-actions wrap">
          <DragChoice mode={dragMode} onChoose={setDragMode} />
          <ZoomButtons
            zoomBy={(factor) => viewer.zoomBy(factor)}
            fitSelection={target && fitSelection}
            fitAll={() => viewer.fitAll()}
          />
        </div>
      </div>
      <div className="timeline-picture column" ref={picture}>
        <div className="timeline-head">
          <About timeline={timeline} />
          <Minimap
            viewer={viewer}
            rows={rows}
            steps={timeline.steps}
            density={(isSearching && hits.query.data?.density) || null}
            finding={overlay.finding?.spans ?? []}
          />
          <TrackFilter timeline={timeline} settings={settings} layout={layout} change={change} />
          <Ruler
            viewer={viewer}
            overlay={overlay}
            onTime={(part) => {
              const next = part && { startNs: part.start, endNs: part.end };
              go(next ? { time: next } : { time: null, step: null }, 'replace');
            }}
          />
        </div>
        <Tracks
          engine={engine}
          timeline={timeline}
          names={names}
          layout={layout}
          overlay={overlay}
          actions={trackActions}
          gestures={gestures}
          announcement={announcementOf(details, timeline)}
          onShowAllTracks={() => change({ hidden: [], kinds: [], filter: '' })}
        />
      </div>
      <Panel
        trace={trace}
        traceName={traceName}
        timeline={timeline}
        names={names}
        viewer={viewer}
        settings={settings}
        change={change}
        selected={selected}
        hits={hits}
        findings={findings}
        listedTrack={listedTrack ?? details?.track ?? null}
        onListedTrack={setListedTrack}
        onHit={showHit}
        onHover={setHovered}
        onFinding={(outcome) => {
          const { spans } = shownFinding(outcome);
          go({ open: outcome.rule }, 'replace');
          viewer.fit({
            start: Math.min(...spans.map(({ start }) => start)),
            end: Math.max(...spans.map(({ end }) => end)),
          });
        }}
        onFit={() => selectedTime && viewer.fit(selectedTime)}
        summarize={{
          visible: () => {
            const visible = viewer.visibleTracks(); // none would mean all
            if (visible.length > 0) summarize(viewer.goal, visible);
            else toast('No track with slices is visible');
          },
          selected: selectedTime && (() => summarize(selectedTime, [])),
        }}
      />
      <span className="visually-hidden">Tracks shown: {count(layout.lanes.length)}.</span>
    </div>
  );
}
