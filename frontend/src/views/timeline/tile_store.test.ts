import { describe, expect, it, vi } from 'vitest';
import { encodeTile, type MadeSlice, tileSource } from '../../../tests/timeline_tiles';
import { TileStore } from './tile_store';

const slices: readonly MadeSlice[] = Array.from({ length: 200 }, (_, at) => ({
  track: at % 2,
  row: 0,
  startNs: at * 40,
  endNs: at * 40 + 30,
  name: at,
  event: at,
}));

const settle = (): Promise<void> => new Promise((done) => setTimeout(done, 0));

describe('the tile store', () => {
  it('requests all visible tracks once and together', async () => {
    const fetchTile = vi.fn(tileSource(slices));
    const changed = vi.fn();
    const store = new TileStore(fetchTile, changed);
    store.request([{ level: 2, tile: 0, tracks: [0, 1] }]);
    store.request([{ level: 2, tile: 0, tracks: [0, 1] }]);
    await settle();
    store.request([{ level: 2, tile: 0, tracks: [0, 1] }]);
    expect(fetchTile.mock.calls.map(([tracks, level, tile]) => [tracks, level, tile])).toEqual([
      [[0, 1], 2, 0],
    ]);
    expect(changed).toHaveBeenCalledTimes(1);
    expect(store.has(1, 2, 0)).toBe(true);
  });

  it('requests only missing tracks', async () => {
    const fetchTile = vi.fn(tileSource(slices));
    const store = new TileStore(fetchTile, () => undefined);
    store.request([{ level: 2, tile: 0, tracks: [0] }]);
    await settle();
    store.request([{ level: 2, tile: 0, tracks: [0, 1] }]);
    expect(fetchTile.mock.lastCall?.[0]).toEqual([1]);
  });

  it('aborts a pending request that is not in the new queue', () => {
    const signals: AbortSignal[] = [];
    const store = new TileStore(
      (_tracks, _level, _tile, signal) => {
        signals.push(signal);
        return new Promise(() => undefined);
      },
      () => undefined,
    );
    store.request([{ level: 2, tile: 0, tracks: [0] }]);
    store.request([{ level: 1, tile: 0, tracks: [0] }]);
    expect(signals.map((signal) => signal.aborted)).toEqual([true, false]);
  });

  it('falls back to coarser tiles, overlaid by finer ones', async () => {
    const store = new TileStore(tileSource(slices), () => undefined);
    store.request([
      { level: 4, tile: 0, tracks: [0] },
      { level: 1, tile: 1, tracks: [0] },
    ]);
    await settle();
    const segments = store.segments(0, 2, 0);
    expect(
      segments.map(({ tile, startNs, endNs, isExact }) => [tile.level, startNs, endNs, isExact]),
    ).toEqual([
      [4, 0, 4096, false],
      [1, 2048, 4096, false],
    ]);
    expect(store.segments(0, 4, 0).map((segment) => segment.isExact)).toEqual([true]);
    expect(store.segments(1, 2, 0)).toEqual([]);
  });

  it('evicts the least recently drawn tiles, never those drawn now', async () => {
    const size = encodeTile(slices, [0], 0, 0).byteLength;
    const store = new TileStore(tileSource(slices), () => undefined, {
      bytes: size * 2.5,
      atOnce: 1,
      retryMs: 0,
    });
    for (const tile of [0, 1, 2]) {
      store.tick();
      if (tile === 2) store.segments(0, 0, 0);
      store.request([{ level: 0, tile, tracks: [0] }]);
      await settle();
    }
    expect([0, 1, 2].map((tile) => store.has(0, 0, tile))).toEqual([true, false, true]);
    expect(store.sizeBytes).toBeLessThanOrEqual(size * 2.5);
  });

  it('reports an error, and retries later', async () => {
    vi.useFakeTimers();
    const fetchTile = vi
      .fn(tileSource(slices))
      .mockRejectedValueOnce(new Error('The server does not answer.'));
    const store = new TileStore(fetchTile, () => undefined);
    store.request([{ level: 0, tile: 0, tracks: [0] }]);
    await vi.advanceTimersByTimeAsync(10);
    expect(store.failure?.message).toBe('The server does not answer.');
    await vi.advanceTimersByTimeAsync(2500);
    expect(store.failure).toBeNull();
    expect(store.has(0, 0, 0)).toBe(true);
    vi.useRealTimers();
  });

  it('prefetches only without pending visible requests', async () => {
    const fetchTile = vi.fn(tileSource(slices));
    const store = new TileStore(fetchTile, () => undefined);
    store.request([
      { level: 2, tile: 0, tracks: [0] },
      { level: 2, tile: 1, tracks: [0], isAhead: true },
    ]);
    expect(fetchTile.mock.calls.map(([, , tile]) => tile)).toEqual([0]);
    await settle();
    expect(fetchTile.mock.calls.map(([, , tile]) => tile)).toEqual([0, 1]);
  });

  it('rejects a mismatched tile, and does not retry forever', async () => {
    const fetchTile = vi.fn(() => Promise.resolve(encodeTile(slices, [0], 0, 0)));
    const store = new TileStore(fetchTile, () => undefined);
    store.request([{ level: 3, tile: 1, tracks: [0] }]);
    await settle();
    expect(fetchTile).toHaveBeenCalledTimes(1);
    expect(store.failure?.message).toBe('The server answered with another tile.');
    store.dispose();
  });
});
