/** The selected slice: an event, which the URL holds, or an idle time, which no event stands for. */
import { useEffect, useRef, useState } from 'react';
import { api, type ParametersOf, type QueryOf } from '../../api/client';
import { useTraceQuery } from '../../api/queries';
import { useNavigation } from '../../state/navigation';
import { useLatestRequest } from './latest_request';
import { isOpenTrack } from './layout';
import { rangeOf } from './overlay';
import type { Picked } from './pick';
import { type Settings, toggledIn } from './settings';
import { NO_EVENT } from './tiles';
import type { Viewer } from './viewer';
import type { Hit, SliceDetails, Timeline } from './wire';

export interface SelectedSlice {
  /** The details of the previous selection stay until those of the next arrive. */
  readonly details: SliceDetails | undefined;
  readonly error: Error | null;
  /** The selected idle time. */
  readonly picked: Picked | null;
  /** The drawn slice that merges the selected event with others. */
  readonly merged: Picked | null;
  readonly isSelected: boolean;
  readonly select: (event: number | null) => void;
  /** Selects a clicked slice; `onEvent` receives its event before the URL changes. */
  readonly pick: (picked: Picked, onEvent: (event: number) => void) => void;
  /** Requests a slice by its position; a later selection drops the response. */
  readonly request: <N extends 'at' | 'neighbour'>(
    name: N,
    parameters: QueryOf<`traces/{trace}/timeline/${N}`>,
    onHit: (hit: Hit | null) => void,
  ) => void;
}

export function useSelectedSlice(trace: string): SelectedSlice {
  const { location, go } = useNavigation();
  const [picked, setPicked] = useState<Picked | null>(null);
  const [merged, setMerged] = useState<{ slice: Picked; event: number } | null>(null);
  const { event } = location;
  const query = useTraceQuery(
    trace,
    'timeline/slices/{event}',
    { event: event ?? 0 },
    { enabled: event !== null },
  );
  const last = useRef<SliceDetails | undefined>(undefined);
  if (query.data || event === null || query.error) last.current = query.data;
  const latest = useLatestRequest();
  const select = (next: number | null): void => {
    latest.cancel();
    setPicked(null);
    setMerged(null);
    go({ event: next }, 'replace');
  };
  const request: SelectedSlice['request'] = (name, parameters, onHit) => {
    const signal = latest.begin();
    api
      .get(
        `traces/{trace}/timeline/${name}`,
        { trace, ...parameters } as ParametersOf<`traces/{trace}/timeline/${typeof name}`>,
        signal,
      )
      .then(
        ({ hit }) => hit,
        () => null,
      )
      .then((hit) => {
        if (!signal.aborted) onHit(hit);
      });
  };
  const pick: SelectedSlice['pick'] = (slice, onEvent) => {
    const { track, row, startNs, endNs, count } = slice;
    // A shared file has the details of few events: what is drawn is shown instead.
    if (slice.event === NO_EVENT || import.meta.env.MODE === 'shared') {
      select(null);
      setPicked(slice);
    } else if (count === 1) {
      onEvent(slice.event);
      select(slice.event);
    } else {
      // The server knows which of the merged events is in the middle; without it the longest is selected.
      const position = { track, row, time_ns: Math.round((startNs + endNs) / 2) };
      request('at', position, (hit) => {
        const middle = hit?.event ?? slice.event;
        onEvent(middle);
        select(middle);
        setMerged({ slice, event: middle });
      });
    }
  };
  return {
    details: event === null ? undefined : last.current,
    error: query.error,
    picked,
    merged: merged?.event === event ? merged.slice : null,
    isSelected: event !== null || picked !== null,
    select,
    pick,
    request,
  };
}

/** The toggled tracks with a track and the groups around it open; null if they are open already. */
function opened(timeline: Timeline, toggled: readonly number[], id: number): number[] | null {
  const trackOf = (other: number | null) => timeline.tracks.find((track) => track.id === other);
  let next = [...toggled];
  for (let track = trackOf(id); track; track = trackOf(track.parent)) {
    if (!isOpenTrack(track, next)) next = toggledIn(next, track.id);
  }
  return next.join() === toggled.join() ? null : next;
}

/** Scrolls to a slice selected by a link, a key or a list; returns how to exempt a clicked event. */
export function useRevealedSlice(
  viewer: Viewer,
  timeline: Timeline,
  details: SliceDetails | undefined,
  { toggled }: Settings,
  change: (patch: Partial<Settings>) => void,
): (event: number) => void {
  const clicked = useRef<number | null>(null);
  const revealed = useRef<number | null>(null);
  useEffect(() => {
    if (!details || revealed.current === details.event) return;
    const next = opened(timeline, toggled, details.track);
    if (clicked.current === details.event) revealed.current = details.event;
    else if (next) change({ toggled: next });
    else {
      revealed.current = details.event;
      viewer.reveal(rangeOf(details), details);
    }
  }, [viewer, timeline, details, toggled, change]);
  return (event) => {
    clicked.current = event;
  };
}

/** The nearest linked slice that begins after (1) or before (-1) the selected one. */
export function linkedTo(details: SliceDetails | undefined, by: -1 | 1): number | null {
  if (!details) return null;
  const links = details.links
    .filter((link) => (link.start_ns - details.start_ns) * by > 0)
    .sort((a, b) => (a.start_ns - b.start_ns) * by);
  return links[0]?.event ?? null;
}
