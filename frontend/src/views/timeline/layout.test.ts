import { describe, expect, it } from 'vitest';
import { laneAt, layoutOf, movedBy, movedTo, rowAt, rowTopPx, withCounterGroup } from './layout';
import type { Settings } from './settings';
import type { Track } from './wire';

const track = (id: number, label: string, patch: Partial<Track> = {}): Track => ({
  id,
  parent: null,
  kind: 'thread',
  label,
  detail: '',
  row_count: 3,
  event_count: 10,
  busy_ns: 0,
  order: id,
  unit: '',
  is_open: true,
  ...patch,
});

const tracks = [
  track(1, 'GPU 0', { kind: 'group', row_count: 0 }),
  track(2, 'stream 7', { kind: 'stream', parent: 1, row_count: 1 }),
  track(3, 'stream 20', { kind: 'stream', parent: 1, row_count: 1 }),
  track(4, 'Host', { kind: 'group', row_count: 0 }),
  track(5, 'thread 100', { parent: 4 }),
  track(6, 'thread 200', { parent: 4, is_open: false }),
  track(7, 'memory', { kind: 'counter', parent: 4, row_count: 0 }),
];

type Wants = Parameters<typeof layoutOf>[1];
const NOTHING: Wants = { pinned: [], toggled: [], hidden: [], kinds: [], filter: '', order: [] };
const shown = (patch: Partial<Settings>): string[] =>
  layoutOf({ tracks }, { ...NOTHING, ...patch }).lanes.map((lane) => lane.track.label);

describe('tracks', () => {
  it('are listed below their groups in the server’s order', () => {
    expect(shown({})).toEqual([
      'GPU 0',
      'stream 7',
      'stream 20',
      'Host',
      'thread 100',
      'thread 200',
      'memory',
    ]);
  });

  it('have lower rows where a deep track is pinned', () => {
    const deep = [track(1, 'deep', { row_count: 40 }), track(2, 'flat', { row_count: 2 })];
    const { pinned, pinnedPx } = layoutOf({ tracks: deep }, { ...NOTHING, pinned: [1, 2] });
    expect(pinned.map(({ rows, rowPx }) => [rows, rowPx])).toEqual([
      [40, 3],
      [2, 18],
    ]);
    expect(pinnedPx).toBeLessThan(200);
  });

  it('have the counters below them, in a group that is collapsed at first', () => {
    const grouped = withCounterGroup(tracks);
    const labels = (patch: Partial<Settings>): string[] =>
      layoutOf({ tracks: grouped }, { ...NOTHING, ...patch }).lanes.map((lane) => lane.track.label);
    const threads = ['GPU 0', 'stream 7', 'stream 20', 'Host', 'thread 100', 'thread 200'];
    expect(labels({})).toEqual([...threads, 'Counters']);
    const [counters] = grouped.filter(({ label }) => label === 'Counters');
    expect(counters).toMatchObject({ id: 8, detail: 'memory' });
    expect(labels({ toggled: [8] })).toEqual([...threads, 'Counters', 'memory']);
    expect(labels({ filter: 'memory' })).toEqual(['Counters', 'memory']);
    expect(grouped.find(({ id }) => id === 7)?.detail).toBe('Host');
  });

  it('keep their numbers, and are as they were where all or none are counters', () => {
    expect(withCounterGroup(tracks).map(({ id }) => id)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    const counters = tracks.filter(({ kind }) => kind === 'counter' || kind === 'group');
    expect(withCounterGroup(counters)).toBe(counters);
    const others = tracks.filter(({ kind }) => kind !== 'counter');
    expect(withCounterGroup(others)).toBe(others);
  });

  it('are filtered by their name or their group’s', () => {
    expect(shown({ filter: 'STREAM 2' })).toEqual(['GPU 0', 'stream 20']);
    expect(shown({ filter: 'gpu' })).toEqual(['GPU 0', 'stream 7', 'stream 20']);
    expect(shown({ filter: 'nothing like it' })).toEqual([]);
  });

  it('are hidden one by one or by kind, with a group of hidden tracks', () => {
    expect(shown({ hidden: [2], kinds: ['thread', 'counter'] })).toEqual(['GPU 0', 'stream 20']);
    expect(layoutOf({ tracks }, { ...NOTHING, hidden: [2], kinds: ['counter'] }).hiddenCount).toBe(
      2,
    );
  });

  it('of a collapsed group are hidden, unless the filter matches', () => {
    expect(shown({ toggled: [1] })).toEqual([
      'GPU 0',
      'Host',
      'thread 100',
      'thread 200',
      'memory',
    ]);
    expect(shown({ toggled: [1], filter: 'stream 7' })).toEqual(['GPU 0', 'stream 7']);
  });

  it('that are collapsed have small rows', () => {
    const { lanes } = layoutOf({ tracks }, NOTHING);
    expect(lanes.map((lane) => lane.kind)).toEqual([
      'group',
      'rows',
      'rows',
      'group',
      'rows',
      'mini',
      'counter',
    ]);
  });

  it('are laid out without gaps', () => {
    const { lanes, heightPx } = layoutOf({ tracks }, NOTHING);
    let topPx = 0;
    for (const lane of lanes) {
      expect(lane.topPx).toBe(topPx);
      topPx += lane.heightPx;
    }
    expect(heightPx).toBe(topPx);
  });

  it('that are pinned are at the top too, in the order of pinning', () => {
    const { pinned } = layoutOf({ tracks }, { ...NOTHING, pinned: [5, 2, 99, 1] });
    expect(pinned.map((lane) => lane.track.id)).toEqual([5, 2]);
  });

  it('are moved among siblings', () => {
    const down = movedBy(tracks, [], { id: 5, by: 1 });
    expect(shown({ order: down }).slice(3)).toEqual(['Host', 'thread 200', 'thread 100', 'memory']);
    expect(shown({ order: movedBy(tracks, down, { id: 5, by: -1 }) })).toEqual(shown({}));
    expect(shown({ order: movedBy(tracks, [], { id: 5, by: -1 }) })).toEqual(shown({}));
    expect(shown({ order: movedTo(tracks, [], { id: 7, onto: 5 }) }).slice(3)).toEqual([
      'Host',
      'memory',
      'thread 100',
      'thread 200',
    ]);
    expect(shown({ order: movedTo(tracks, [], { id: 7, onto: 2 }) })).toEqual(shown({}));
  });
});

describe('a vertical position', () => {
  const { lanes, heightPx } = layoutOf({ tracks }, NOTHING);

  it('is in the lane that a linear search finds', () => {
    for (let px = -5; px < heightPx + 5; px += 1) {
      const slow = lanes.find((lane) => lane.topPx <= px && px < lane.topPx + lane.heightPx);
      expect(laneAt(lanes, px)).toBe(slow);
    }
  });

  it('is in the last row that begins above it', () => {
    for (const lane of lanes.filter((each) => each.rows > 0)) {
      for (let row = 0; row < lane.rows; row += 1) {
        expect(rowAt(lane, rowTopPx(lane, row))).toBe(row);
        expect(rowAt(lane, rowTopPx(lane, row) + lane.rowPx - 1)).toBe(row);
      }
      expect(rowAt(lane, rowTopPx(lane, 0) - 1)).toBeNull();
      expect(rowAt(lane, rowTopPx(lane, lane.rows))).toBeNull();
    }
  });
});
