import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type MadeSlice, tileSource } from '../../../tests/timeline_tiles';
import { lengthOf } from '../../canvas/viewport';
import { zoomFactor } from './gestures';
import { layoutOf, ROW_PX } from './layout';
import { Coverage, gripAt, heatRows } from './minimap';
import { TileStore } from './tile_store';
import { LEAST_NS, Viewer } from './viewer';
import type { Track } from './wire';

const track = (id: number, patch: Partial<Track> = {}): Track => ({
  id,
  parent: null,
  kind: 'thread',
  label: `track ${id}`,
  detail: '',
  row_count: 2,
  event_count: 10 * id,
  busy_ns: 0,
  order: id,
  unit: '',
  is_open: true,
  ...patch,
});

const TRACKS = Array.from({ length: 30 }, (_, id) => track(id));
const NOTHING = { pinned: [], toggled: [], hidden: [], kinds: [], filter: '', order: [] };
const BOUNDS = { start: 0, end: 1_000_000 };
const slices: readonly MadeSlice[] = [
  { track: 0, row: 0, startNs: 0, endNs: 250_000, name: 0, event: 1 },
  { track: 0, row: 1, startNs: 100_000, endNs: 100_010, name: 1, event: 2 },
  { track: 1, row: 0, startNs: 500_000, endNs: 1_000_000, name: 2, event: 3 },
];

function viewerOf(): Viewer {
  const viewer: Viewer = new Viewer(
    BOUNDS,
    new TileStore(tileSource(slices), () => undefined),
    null,
  );
  viewer.setSize(1000, 300);
  viewer.setLayout(layoutOf({ tracks: TRACKS }, NOTHING));
  return viewer;
}

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe('the visible tiles', () => {
  it('are requested first, then the minimap, then prefetches', () => {
    const viewer = viewerOf();
    viewer.overview = [29];
    viewer.show({ start: 400_000, end: 500_000 });
    const [first, ...others] = viewer.tileRequests();
    const inSight = viewer.visibleLanes().map(({ lane }) => lane.track.id);
    expect(first).toMatchObject({ level: 6, tile: 6, tracks: inSight });
    expect(inSight).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    const ahead = others.findIndex((request) => request.isAhead === true);
    expect(others.slice(0, ahead).some((request) => request.tracks.includes(29))).toBe(true);
    expect(others.slice(ahead).every((request) => request.isAhead === true)).toBe(true);
  });

  it('are requested only once the size is known', () => {
    const fetchTile = vi.fn(tileSource(slices));
    const viewer = new Viewer(BOUNDS, new TileStore(fetchTile, () => undefined), null);
    viewer.setLayout(layoutOf({ tracks: TRACKS }, NOTHING));
    vi.advanceTimersByTime(1000);
    expect(fetchTile).not.toHaveBeenCalled();
    viewer.setSize(1000, 300);
    vi.advanceTimersByTime(1000);
    expect(fetchTile).toHaveBeenCalled();
  });

  it('are hit-tested by point', async () => {
    const viewer = viewerOf();
    await vi.advanceTimersByTimeAsync(500);
    viewer.point({ x: 100, y: 8 });
    expect(viewer.hover).toMatchObject({ track: 0, row: 0, event: 1, count: 1 });
    viewer.point({ x: 100, y: 8 + ROW_PX });
    expect(viewer.hover).toMatchObject({ event: 2 });
    viewer.point({ x: 400, y: 8 });
    expect(viewer.hover).toBeNull();
  });
});

describe('the view', () => {
  it('reports its final range once', () => {
    const viewer = viewerOf();
    const rested = vi.fn();
    viewer.onRest(rested);
    viewer.panPx(5);
    viewer.zoomAt(500, 0.5);
    viewer.panPx(100);
    vi.advanceTimersByTime(1000);
    expect(rested.mock.calls).toEqual([[{ start: 300_000, end: 800_000 }]]);
  });

  it('animates to its target', () => {
    const viewer = viewerOf();
    viewer.goTo({ start: 100, end: 1100 });
    expect(viewer.advance(1000)).toBe(true);
    expect(viewer.advance(1090)).toBe(true);
    expect(lengthOf(viewer.view)).toBeLessThan(1e6);
    expect(viewer.advance(1300)).toBe(false);
    expect(viewer.view).toEqual({ start: 100, end: 1100 });
  });

  it('zooms in until a revealed slice is visible', () => {
    const viewer = viewerOf();
    const scrolled = vi.fn();
    viewer.scrollTo = scrolled;
    viewer.reveal({ start: 100_000, end: 100_010 }, { track: 20, row: 1 });
    viewer.advance(0);
    viewer.advance(1000);
    expect(10 / viewer.nsPerPx).toBeGreaterThan(20);
    expect(lengthOf(viewer.view)).toBeGreaterThanOrEqual(LEAST_NS);
    expect(scrolled).toHaveBeenCalledTimes(1);
  });

  it('does not scroll if the row is visible', () => {
    const viewer = viewerOf();
    const scrolled = vi.fn();
    viewer.scrollTo = scrolled;
    viewer.revealLane(1, 1);
    expect(scrolled).not.toHaveBeenCalled();
  });
});

it('wheel and pinch zoom in traceable steps', () => {
  expect(zoomFactor(0)).toBe(1);
  expect(zoomFactor(-5) * zoomFactor(5)).toBeCloseTo(1);
  expect(zoomFactor(1e9)).toBeLessThan(1.5);
});

describe('the minimap', () => {
  it('has one line per device, else one per busiest thread', () => {
    expect(heatRows({ tracks: TRACKS }).map((row) => row.tracks)).toEqual([[29], [28], [27]]);
    const streams = [0, 1, 2].map((id) => track(id, { kind: 'stream', parent: id < 2 ? 7 : 8 }));
    expect(heatRows({ tracks: [...streams, ...TRACKS] }).map((row) => row.tracks)).toEqual([
      [0, 1],
      [2],
    ]);
  });

  it('shows the busy fraction of the busiest track per pixel', async () => {
    const viewer = viewerOf();
    viewer.overview = [0, 1];
    viewer.overviewPx = 10;
    const coverage = new Coverage(viewer, [0, 1]);
    expect(coverage.update(10)).toBe(true);
    viewer.requestTiles();
    await vi.advanceTimersByTimeAsync(500);
    expect(coverage.update(10)).toBe(true);
    expect([...coverage.shares].map((share) => Math.round(share * 10) / 10)).toEqual([
      1, 1, 0.5, 0, 0, 1, 1, 1, 1, 1,
    ]);
    expect(coverage.update(10)).toBe(false);
  });

  it('is dragged by an edge, the window, or outside of it', () => {
    const view = { start: 250_000, end: 500_000 };
    const grip = (x: number): string => gripAt({ view, bounds: BOUNDS }, 1000, x);
    expect([249, 501, 300, 100, 700].map(grip)).toEqual(['start', 'end', 'window', 'new', 'new']);
    expect(gripAt({ view: BOUNDS, bounds: BOUNDS }, 1000, 500)).toBe('new');
  });
});
