import { describe, expect, it } from 'vitest';
import { laneAt, layoutOf, movedBy, movedTo, rowAt, rowTopPx } from './layout';
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
  it('stand below their groups in the server’s order', () => {
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

  it('are found by words of their own or of their group’s', () => {
    expect(shown({ filter: 'STREAM 2' })).toEqual(['GPU 0', 'stream 20']);
    expect(shown({ filter: 'gpu' })).toEqual(['GPU 0', 'stream 7', 'stream 20']);
    expect(shown({ filter: 'nothing like it' })).toEqual([]);
  });

  it('are hidden one by one or by kind, their group with the last of them', () => {
    expect(shown({ hidden: [2], kinds: ['thread', 'counter'] })).toEqual(['GPU 0', 'stream 20']);
    expect(layoutOf({ tracks }, { ...NOTHING, hidden: [2], kinds: ['counter'] }).hiddenCount).toBe(
      2,
    );
  });

  it('of a group that is shut are not shown, unless they are looked for', () => {
    expect(shown({ toggled: [1] })).toEqual([
      'GPU 0',
      'Host',
      'thread 100',
      'thread 200',
      'memory',
    ]);
    expect(shown({ toggled: [1], filter: 'stream 7' })).toEqual(['GPU 0', 'stream 7']);
  });

  it('that are shut show their rows small', () => {
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

  it('lie one below the other without gaps', () => {
    const { lanes, heightPx } = layoutOf({ tracks }, NOTHING);
    let topPx = 0;
    for (const lane of lanes) {
      expect(lane.topPx).toBe(topPx);
      topPx += lane.heightPx;
    }
    expect(heightPx).toBe(topPx);
  });

  it('that are pinned stand above as well, in the order in which they were pinned', () => {
    const { pinned } = layoutOf({ tracks }, { ...NOTHING, pinned: [5, 2, 99, 1] });
    expect(pinned.map((lane) => lane.track.id)).toEqual([5, 2]);
  });

  it('are moved among those with the same parent', () => {
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

describe('a height', () => {
  const { lanes, heightPx } = layoutOf({ tracks }, NOTHING);

  it('is in the lane that a slow look finds', () => {
    for (let px = -5; px < heightPx + 5; px += 1) {
      const slow = lanes.find((lane) => lane.topPx <= px && px < lane.topPx + lane.heightPx);
      expect(laneAt(lanes, px)).toBe(slow);
    }
  });

  it('is in the row that begins last above it', () => {
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
