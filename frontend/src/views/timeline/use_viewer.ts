/** The viewer with its stores, for as long as the trace is shown; its range follows the URL and is written to it. */
import { useEffect, useMemo, useRef, useState } from 'react';
import { api } from '../../api/client';
import { isSameRange, type Range } from '../../canvas/viewport';
import { heatRows } from './minimap';
import { Palette } from './palette';
import { Scene } from './scene';
import { CounterStore, DetailsStore } from './stores';
import { TileStore } from './tile_store';
import { Viewer } from './viewer';
import type { Timeline } from './wire';

export interface Engine {
  readonly viewer: Viewer;
  readonly scene: Scene;
  readonly palette: Palette;
  readonly counters: CounterStore;
  readonly details: DetailsStore;
}

function engineOf(trace: string, timeline: Timeline, start: Range | null): Engine {
  const changed = (): void => viewer.draw();
  const store = new TileStore(
    (tracks, level, tile, signal) =>
      api.bytes(
        'traces/{trace}/timeline/tiles',
        { trace, tracks: tracks.join(','), level, tile },
        signal,
      ),
    changed,
  );
  const counters = new CounterStore(
    (track, level, tile, signal) =>
      api.get('traces/{trace}/timeline/counters', { trace, track, level, tile }, signal),
    changed,
  );
  const details = new DetailsStore(
    (event, signal) => api.get('traces/{trace}/timeline/slices/{event}', { trace, event }, signal),
    changed,
  );
  const bounds = { start: timeline.start_ns, end: timeline.end_ns };
  const viewer = new Viewer(bounds, store, start, timeline.levels);
  viewer.overview = heatRows(timeline).flatMap((row) => row.tracks);
  const palette = new Palette(timeline.categories);
  return { viewer, counters, details, palette, scene: new Scene({ viewer, palette, counters }) };
}

export function useEngine(
  trace: string,
  timeline: Timeline,
  names: readonly string[],
  start: Range | null,
): Engine {
  const [engine] = useState(() => engineOf(trace, timeline, start));
  useMemo(() => engine.scene.named(names), [engine, names]);
  useEffect(() => {
    engine.viewer.draw();
    engine.viewer.requestTiles();
    return () => {
      engine.viewer.dispose();
      engine.counters.dispose();
      engine.details.dispose();
    };
  }, [engine]);
  return engine;
}

const textOf = (range: Range | null): string => (range ? `${range.start}-${range.end}` : '');

/** Shows the range in the URL, and writes the visible range there once it stops moving. */
export function useRangeInUrl(
  viewer: Viewer,
  at: Range | null,
  write: (at: Range | null) => void,
): void {
  const lastText = useRef(textOf(at));
  const latest = useRef(write);
  latest.current = write;
  useEffect(() => {
    if (textOf(at) === lastText.current) return;
    lastText.current = textOf(at);
    viewer.goTo(at ?? viewer.bounds);
  }, [viewer, at]);
  useEffect(
    () =>
      viewer.onRest((view) => {
        const whole = isSameRange(view, viewer.bounds);
        const rested = whole ? null : { start: Math.floor(view.start), end: Math.ceil(view.end) };
        if (textOf(rested) === lastText.current) return;
        lastText.current = textOf(rested);
        latest.current(rested);
      }),
    [viewer],
  );
}

/** Shows a step whose time arrives after the trace was opened, unless the user has moved the view. */
export function useStepInSight(viewer: Viewer, isAwaited: boolean, time: Range | null): void {
  const isDone = useRef(!isAwaited);
  useEffect(() => {
    if (isDone.current || isAwaited) return;
    isDone.current = true;
    if (time && isSameRange(viewer.goal, viewer.bounds)) viewer.goTo(time);
  }, [viewer, isAwaited, time]);
}
