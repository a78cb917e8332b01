/** The view with its stores of tiles and curves, for as long as the recording is shown; its range follows the URL and writes it. */
import { useEffect, useMemo, useRef, useState } from 'react';
import { api, segment } from '../../api/client';
import type { TimelineCounter } from '../../api/types.gen';
import { isSameRange, type Range } from '../../canvas/viewport';
import { CounterStore } from './counters';
import { DetailsCache } from './details_cache';
import { heatRows } from './minimap';
import { Palette } from './palette';
import { Scene } from './scene';
import { TileStore } from './tile_store';
import { Viewer } from './viewer';
import type { SliceDetails, Timeline } from './wire';

export interface Machine {
  readonly viewer: Viewer;
  readonly scene: Scene;
  readonly counters: CounterStore;
  readonly details: DetailsCache;
}

function machineOf(trace: string, timeline: Timeline, start: Range | null): Machine {
  const path = (what: string): string => `traces/${segment(trace)}/timeline/${what}`;
  const changed = (): void => viewer.draw();
  const store = new TileStore(
    (tracks, level, tile, signal) =>
      api.bytes(path('tiles'), { tracks: tracks.join(','), level, tile }, signal),
    changed,
  );
  const counters = new CounterStore(
    (track, level, tile, signal) =>
      api.get<TimelineCounter>(path('counters'), { track, level, tile }, signal),
    changed,
  );
  const details = new DetailsCache(
    (event, signal) => api.get<SliceDetails>(path(`slices/${event}`), {}, signal),
    changed,
  );
  const bounds = { start: timeline.start_ns, end: timeline.end_ns };
  const viewer = new Viewer(bounds, store, start);
  viewer.overview = heatRows(timeline).flatMap((row) => row.tracks);
  const palette = new Palette(timeline.categories);
  return { viewer, counters, details, scene: new Scene({ viewer, palette, counters }) };
}

export function useMachine(
  trace: string,
  timeline: Timeline,
  names: readonly string[],
  start: Range | null,
): Machine {
  const [machine] = useState(() => machineOf(trace, timeline, start));
  useMemo(() => machine.scene.named(names), [machine, names]);
  useEffect(() => {
    machine.viewer.draw();
    machine.viewer.ask();
    return () => {
      machine.viewer.dispose();
      machine.counters.dispose();
      machine.details.dispose();
    };
  }, [machine]);
  return machine;
}

const textOf = (range: Range | null): string => (range ? `${range.start}-${range.end}` : '');

/** The URL's range is gone to; what the view comes to rest on is written there. */
export function useRangeInUrl(
  viewer: Viewer,
  at: Range | null,
  write: (at: Range | null) => void,
): void {
  const known = useRef(textOf(at));
  const latest = useRef(write);
  latest.current = write;
  useEffect(() => {
    if (textOf(at) === known.current) return;
    known.current = textOf(at);
    viewer.goTo(at ?? viewer.bounds);
  }, [viewer, at]);
  useEffect(
    () =>
      viewer.onRest((view) => {
        const whole = isSameRange(view, viewer.bounds);
        const rested = whole ? null : { start: Math.floor(view.start), end: Math.ceil(view.end) };
        if (textOf(rested) === known.current) return;
        known.current = textOf(rested);
        latest.current(rested);
      }),
    [viewer],
  );
}

/** Goes to a step whose time was not known when the recording was opened, unless the user was faster. */
export function useStepInSight(viewer: Viewer, isAwaited: boolean, time: Range | null): void {
  const isDone = useRef(!isAwaited);
  useEffect(() => {
    if (isDone.current || isAwaited) return;
    isDone.current = true;
    if (time && isSameRange(viewer.goal, viewer.bounds)) viewer.goTo(time);
  }, [viewer, isAwaited, time]);
}
