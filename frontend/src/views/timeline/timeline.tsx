/** The timeline: an overview, an axis, tracks, and below them what is known of what was chosen. */
import { type ReactNode, useEffect, useMemo, useRef, useState, useSyncExternalStore } from 'react';
import { api, type Parameters, segment } from '../../api/client';
import { useAdvice, useNarrowing, useTraceAnswer } from '../../api/queries';
import type { Outcome, TimelineNeighbour } from '../../api/types.gen';
import type { Range } from '../../canvas/viewport';
import { fileName } from '../../core/export';
import { count, duration, plural } from '../../core/format';
import { matcherOf } from '../../core/search';
import { themeStore } from '../../host/theme';
import { useNavigation } from '../../state/navigation';
import type { Selection } from '../../state/selection';
import { ExportMenu } from '../../widgets/export_menu';
import { OpenElsewhere } from '../../widgets/open_elsewhere';
import { toast } from '../../widgets/toast';
import { ViewHeader } from '../../widgets/view_header';
import { legendOf, subtitleOf } from './exported';
import { findingsOf, placesOf } from './findings';
import { useHits } from './hits';
import { useTimelineKeys } from './keyboard';
import type { TrackActs } from './labels';
import { isOpenTrack, layoutOf, movedBy, movedTo } from './layout';
import { heatRows, Minimap } from './minimap';
import { useOneQuestion } from './one_question';
import type { Overlay } from './overlay';
import { Panel } from './panel';
import type { Picked } from './pick';
import { RankButtons } from './ranks';
import { Ruler } from './ruler';
import { SearchRow, wantedNames } from './search';
import { type Area, parseSettings, type Settings, toggledIn, withSettings } from './settings';
import { trackLabel } from './slice_words';
import { NO_EVENT } from './tiles';
import { Marks, TimeChip, TrackFilter, ZoomButtons } from './toolbar';
import { Tracks } from './tracks';
import { useMachine, useRangeInUrl, useStepInSight } from './use_viewer';
import type { Point, Viewer } from './viewer';
import type { Hit, Place, SliceDetails, Timeline } from './wire';

interface Props {
  readonly selection: Selection;
  readonly timeline: Timeline;
  readonly names: readonly string[];
}

const MARK_REACH_PX = 6;

const timeOf = ({ start_ns, duration_ns }: Place): Range => ({
  start: start_ns,
  end: start_ns + duration_ns,
});

/** A mark at a time; where one is near already, that goes. */
export function marked(marks: readonly number[], timeNs: number, reachNs: number): number[] {
  const near = marks.find((mark) => Math.abs(mark - timeNs) <= reachNs);
  if (near !== undefined) return marks.filter((mark) => mark !== near);
  return [...marks, Math.round(timeNs)].sort((a, b) => a - b);
}

/** The linked slice that begins next to the selected one, behind or before it. */
export function linkedTo(details: SliceDetails | undefined, by: -1 | 1): number | null {
  if (!details) return null;
  const links = details.links
    .filter((link) => (link.start_ns - details.start_ns) * by > 0)
    .sort((a, b) => (a.start_ns - b.start_ns) * by);
  return links[0]?.event ?? null;
}

/** When a search begins: at the selected slice if that is in sight, else at the left edge. */
export function searchedFrom(view: Range, selected: Place | undefined): number {
  const isInSight =
    selected !== undefined &&
    selected.start_ns < view.end &&
    selected.start_ns + selected.duration_ns >= view.start;
  return Math.max(0, Math.ceil(isInSight ? selected.start_ns : view.start));
}

/** Opens a track that is shut, and the groups around it; null where all are open. */
function opened(timeline: Timeline, toggled: readonly number[], id: number): number[] | null {
  let next = [...toggled];
  let track = timeline.tracks.find((each) => each.id === id);
  while (track) {
    if (!isOpenTrack(track, next)) next = toggledIn(next, track.id);
    const parent: number | null = track.parent;
    track = timeline.tracks.find((each) => each.id === parent);
  }
  return next.join() === toggled.join() ? null : next;
}

function useSettings(): readonly [Settings, (patch: Partial<Settings>) => void] {
  const { location, go } = useNavigation();
  const latest = useRef(location.options);
  latest.current = location.options;
  const settings = useMemo(() => parseSettings(location.options), [location.options]);
  const change = useRef((_patch: Partial<Settings>): void => undefined);
  change.current = (patch) => {
    latest.current = withSettings(latest.current, patch);
    go({ options: latest.current }, 'replace');
  };
  const stable = useRef((patch: Partial<Settings>): void => change.current(patch)).current;
  return [settings, stable];
}

interface Chosen {
  /** What was selected before stays until the next is there. */
  readonly details: SliceDetails | undefined;
  readonly error: Error | null;
  readonly picked: Picked | null;
  /** What was clicked where the selected event is drawn together with others. */
  readonly merged: Picked | null;
  readonly select: (event: number | null) => void;
  /** Selects what was clicked; `told` which event that is. */
  readonly pick: (picked: Picked, told: (event: number) => void) => void;
  /** Asks for a slice by its place; the answer is told unless something else was chosen meanwhile. */
  readonly ask: (
    what: 'at' | 'neighbour',
    parameters: Parameters,
    told: (hit: Hit | null) => void,
  ) => void;
}

/** What is selected: an event, kept in the URL, or an idle time, which has no name to be kept by. */
function useChosen(trace: string): Chosen {
  const { location, go } = useNavigation();
  const [picked, setPicked] = useState<Picked | null>(null);
  const [merged, setMerged] = useState<{ of: Picked; event: number } | null>(null);
  const { event } = location;
  const query = useTraceAnswer<SliceDetails>(
    trace,
    `timeline/slices/${event ?? 0}`,
    {},
    { enabled: event !== null },
  );
  const last = useRef<SliceDetails | undefined>(undefined);
  if (query.data || event === null) last.current = query.data;
  const details =
    event === null ? undefined : (query.data ?? (query.error ? undefined : last.current));
  const question = useOneQuestion();
  const select = (next: number | null): void => {
    question.giveUp();
    setPicked(null);
    setMerged(null);
    go({ event: next }, 'replace');
  };
  const ask = (
    what: 'at' | 'neighbour',
    parameters: Parameters,
    told: (hit: Hit | null) => void,
  ): void => {
    const signal = question.begin();
    const tell = (hit: Hit | null): void => {
      if (!signal.aborted) told(hit);
    };
    api
      .get<TimelineNeighbour>(`traces/${segment(trace)}/timeline/${what}`, parameters, signal)
      .then(
        ({ hit }) => tell(hit),
        () => tell(null),
      );
  };
  const pick = (next: Picked, told: (event: number) => void): void => {
    const { track, row, startNs, endNs } = next;
    if (next.event === NO_EVENT) {
      select(null);
      setPicked(next);
    } else if (next.count === 1) {
      told(next.event);
      select(next.event);
    }
    // Of many merged ones the server knows which is at the middle; without it, the longest is meant.
    else {
      const parameters = { track, row, time_ns: Math.round((startNs + endNs) / 2) };
      ask('at', parameters, (hit) => {
        const chosen = hit?.event ?? next.event;
        told(chosen);
        select(chosen);
        setMerged({ of: next, event: chosen });
      });
    }
  };
  const drawn = merged?.event === event ? merged.of : null;
  return { details, error: query.error, picked, merged: drawn, select, pick, ask };
}

/** Brings what a link, a key or a list has chosen into sight; a click on the tracks moves nothing. */
function useRevealed(
  viewer: Viewer,
  timeline: Timeline,
  details: SliceDetails | undefined,
  [settings, change]: readonly [Settings, (patch: Partial<Settings>) => void],
): (event: number) => void {
  const clicked = useRef<number | null>(null);
  const shown = useRef<number | null>(null);
  const { toggled } = settings;
  useEffect(() => {
    if (!details || shown.current === details.event) return;
    const next = opened(timeline, toggled, details.track);
    if (clicked.current === details.event) shown.current = details.event;
    else if (next) change({ toggled: next });
    else {
      shown.current = details.event;
      viewer.reveal(timeOf(details), details);
    }
  }, [viewer, timeline, details, toggled, change]);
  return (event) => {
    clicked.current = event;
  };
}

const spokenOf = (details: SliceDetails | undefined, timeline: Timeline): string =>
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
  const recording = [run.name, selection.worker.name, span.label];
  const picture = useRef<HTMLDivElement>(null);
  const theme = useSyncExternalStore(themeStore.subscribe, themeStore.current);
  const { location, go } = useNavigation();
  const [settings, change] = useSettings();
  const narrowing = useNarrowing(trace);
  const { start_ns: fromNs, end_ns: toNs } = narrowing ?? {};
  const time = useMemo<Range | null>(
    () => (fromNs === undefined || toNs === undefined ? null : { start: fromNs, end: toNs }),
    [fromNs, toNs],
  );
  const machine = useMachine(trace, timeline, names, settings.at ?? time);
  const { viewer } = machine;
  useStepInSight(viewer, narrowing === undefined && settings.at === null, time);
  useRangeInUrl(viewer, settings.at, (at) => change({ at }));
  const { pinned, toggled, hidden, kinds, filter, order } = settings;
  const layout = useMemo(
    () => layoutOf(timeline, { pinned, toggled, hidden, kinds, filter, order }),
    [timeline, pinned, toggled, hidden, kinds, filter, order],
  );
  const rows = useMemo(() => heatRows(timeline), [timeline]);

  const chosen = useChosen(trace);
  const { details } = chosen;
  const byClick = useRevealed(viewer, timeline, details, [settings, change]);

  const matcher = useMemo(() => matcherOf(location.search), [location.search]);
  const selectedTime = details
    ? timeOf(details)
    : chosen.picked && { start: chosen.picked.startNs, end: chosen.picked.endNs };
  const toHit = (hit: Hit | undefined): void => {
    if (!hit) return;
    if (hit.event !== null) chosen.select(hit.event);
    else viewer.reveal(timeOf(hit), hit);
  };
  const found = useHits({
    trace,
    search: location.search,
    selected: location.event,
    fromNs: () => searchedFrom(viewer.goal, details),
    onHit: toHit,
  });
  const isSearching = location.search.trim() !== '';
  const density = isSearching ? (found.query.data?.density ?? null) : null;

  const advice = useAdvice(run, trace);
  const findings = useMemo(
    () => advice.data && findingsOf(advice.data.outcomes, trace),
    [advice.data, trace],
  );
  const [hovered, setHovered] = useState<Outcome | null>(null);
  const finding = hovered ?? findings?.find(({ rule }) => rule === location.open) ?? null;
  const [draft, setDraft] = useState<Area | null>(null);
  const [listed, setListed] = useState<number | null>(null);

  const overlay = useMemo<Overlay>(
    () => ({
      steps: timeline.steps,
      selected: details ?? null,
      picked: chosen.picked,
      links: details?.links ?? [],
      time,
      area: draft ?? settings.area,
      marks: settings.marks,
      finding: finding && placesOf(finding),
      wantedNames: wantedNames(names, matcher),
    }),
    [
      timeline,
      details,
      chosen.picked,
      time,
      draft,
      settings.area,
      settings.marks,
      finding,
      names,
      matcher,
    ],
  );

  const showTab = (tab: Settings['tab']): Partial<Settings> => ({ tab, isPanelShut: false });
  const gestures = {
    click: (point: Point): void => {
      const picked = viewer.pickAt(point);
      if (picked) {
        chosen.pick(picked, byClick);
        if (settings.tab !== null) change(showTab(null));
      } else chosen.select(null);
    },
    doubleClick: (point: Point): void => {
      const picked = viewer.pickAt(point);
      if (picked) viewer.fit({ start: picked.startNs, end: picked.endNs });
      else viewer.fitAll();
    },
    area: (part: Range, tracks: readonly number[], isDone: boolean): void => {
      const area = { start: Math.floor(part.start), end: Math.ceil(part.end), tracks };
      setDraft(isDone ? null : area);
      if (isDone) change({ area, ...showTab('area') });
    },
  };
  const acts: TrackActs = {
    toggle: (id) => change({ toggled: toggledIn(toggled, id) }),
    pin: (id) => change({ pinned: toggledIn(pinned, id) }),
    hide: (id) => change({ hidden: [...hidden, id], pinned: pinned.filter((each) => each !== id) }),
    moveBy: (id, by) => change({ order: movedBy(timeline.tracks, order, { id, by }) }),
    moveTo: (id, onto) => change({ order: movedTo(timeline.tracks, order, { id, onto }) }),
    list: (id) => {
      setListed(id);
      change(showTab('table'));
    },
  };
  const fitSelected = (): boolean => {
    if (selectedTime) viewer.fit(selectedTime);
    else if (settings.area) viewer.fit(settings.area);
    else return false;
    return true;
  };
  const moveHit = (by: -1 | 1): boolean => {
    found.move(by, location.search);
    return isSearching;
  };
  const neighbour = (direction: 'left' | 'right' | 'up' | 'down'): boolean => {
    if (!details) return false;
    chosen.ask('neighbour', { event: details.event, direction }, (hit) => toHit(hit ?? undefined));
    return true;
  };
  const linked = (by: -1 | 1): boolean => {
    const event = linkedTo(details, by);
    if (event !== null) chosen.select(event);
    return event !== null;
  };
  const zoom = (factor: number) => (): undefined => viewer.zoomBy(factor) as undefined;
  const pan = (share: number) => (): undefined => viewer.panBy(share) as undefined;
  const sumUp = (time: Range, tracks: readonly number[]): void => {
    const [start, end] = [Math.max(0, Math.floor(time.start)), Math.ceil(time.end)];
    change({ area: { start, end: Math.max(end, start + 1), tracks }, ...showTab('area') });
  };
  const mark = (pointedNs: number | null): void => {
    const at = pointedNs ?? selectedTime?.start ?? (viewer.view.start + viewer.view.end) / 2;
    change({ marks: marked(settings.marks, Math.max(0, at), MARK_REACH_PX * viewer.nsPerPx) });
  };
  const scroll = (px: number): boolean => {
    viewer.scrollTo(viewer.scrollPx + px);
    return true;
  };
  useTimelineKeys({
    w: zoom(0.6),
    s: zoom(1 / 0.6),
    a: pan(-0.25),
    d: pan(0.25),
    ArrowLeft: () => neighbour('left') || viewer.panBy(-0.1) !== null,
    ArrowRight: () => neighbour('right') || viewer.panBy(0.1) !== null,
    ArrowUp: () => neighbour('up') || scroll(-54),
    ArrowDown: () => neighbour('down') || scroll(54),
    f: fitSelected,
    '0': () => viewer.fitAll() as undefined,
    m: () => {
      mark(viewer.pointer && viewer.timeAt(viewer.pointer.x));
      return true;
    },
    '[': () => linked(-1),
    ']': () => linked(1),
    n: () => moveHit(1),
    p: () => moveHit(-1),
    Enter: () => {
      if (!(details || chosen.picked)) return false;
      change(showTab(null));
      document.querySelector<HTMLElement>('.timeline-panel [role="tab"]')?.focus();
      return true;
    },
    Escape: () => {
      if (location.event !== null || chosen.picked) chosen.select(null);
      else if (settings.area) change({ area: null });
      else if (location.open !== null) go({ open: null }, 'replace');
      else return false;
      return true;
    },
  });

  return (
    <div className="full-view timeline">
      <ViewHeader title="Timeline" note={timeline.note === '' ? undefined : timeline.note}>
        <SearchRow
          value={location.search}
          matcher={matcher}
          found={found}
          onChange={(search) => go({ search }, 'replace')}
        />
        <RankButtons selection={selection} />
        <TimeChip narrowing={narrowing} onFit={() => time && viewer.fit(time)} />
        <Marks
          marks={settings.marks}
          change={change}
          onMark={() => mark(null)}
          onGo={(mark) => viewer.reveal({ start: mark, end: mark + viewer.nsPerPx * 2 }, null)}
        />
        <ZoomButtons zoomBy={(factor) => viewer.zoomBy(factor)} fitAll={() => viewer.fitAll()} />
        <ExportMenu
          note="The tracks as they are seen. Tables are in the details: of an area, and of what a search found."
          picture={{
            element: picture,
            title: 'Timeline',
            subtitle: subtitleOf(recording, settings.at ?? viewer.goal),
            legend: legendOf(timeline.categories, theme),
            file: fileName([...recording, 'timeline'], 'png'),
          }}
        />
        <OpenElsewhere selection={selection} />
      </ViewHeader>
      <div className="timeline-picture" ref={picture}>
        <div className="timeline-head">
          <About timeline={timeline} />
          <Minimap
            viewer={viewer}
            rows={rows}
            steps={timeline.steps}
            density={density}
            finding={overlay.finding?.spans ?? []}
          />
          <TrackFilter timeline={timeline} settings={settings} layout={layout} change={change} />
          <Ruler
            viewer={viewer}
            overlay={overlay}
            onTime={(part) =>
              go(
                {
                  time: part && { startNs: part.start, endNs: part.end },
                  ...(part ? {} : { step: null }),
                },
                'replace',
              )
            }
          />
        </div>
        <Tracks
          machine={machine}
          timeline={timeline}
          names={names}
          layout={layout}
          overlay={overlay}
          acts={acts}
          gestures={gestures}
          spoken={spokenOf(details, timeline)}
          onShowAllTracks={() => change({ hidden: [], kinds: [], filter: '' })}
        />
      </div>
      <Panel
        trace={trace}
        recording={recording}
        timeline={timeline}
        names={names}
        viewer={viewer}
        settings={settings}
        change={change}
        chosen={chosen}
        isChosen={location.event !== null || chosen.picked !== null}
        found={found}
        findings={findings}
        listed={listed ?? details?.track ?? null}
        onListed={setListed}
        onHit={toHit}
        onHover={setHovered}
        onFinding={(outcome) => {
          const places = placesOf(outcome).spans;
          const start = Math.min(...places.map((place) => place.start));
          const end = Math.max(...places.map((place) => place.end));
          go({ open: outcome.rule }, 'replace');
          viewer.fit({ start, end });
        }}
        onFit={fitSelected}
        sums={{
          inSight: () => {
            const seen = viewer.seenTracks(); // none would be taken for all
            if (seen.length > 0) sumUp(viewer.goal, seen);
            else toast('No track with slices is in sight');
          },
          selected: selectedTime && (() => sumUp(selectedTime, [])),
        }}
      />
      <span className="visually-hidden">Tracks shown: {count(layout.lanes.length)}.</span>
    </div>
  );
}

export type { Chosen };
