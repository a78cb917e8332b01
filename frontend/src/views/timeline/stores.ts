/** Small stores of what the server sent: the entry used longest ago goes when there are too many. */
import type { TimelineCounter } from '../../api/types.gen';
import type { SliceDetails } from './wire';

class RecentlyUsed<Key, Value> {
  private readonly entries = new Map<Key, Value>();

  constructor(private readonly most: number) {}

  get(key: Key): Value | undefined {
    const value = this.entries.get(key);
    // A Map keeps the order of insertion: the entry used last moves to the end.
    if (value !== undefined && this.entries.delete(key)) this.entries.set(key, value);
    return value;
  }

  set(key: Key, value: Value): void {
    this.entries.set(key, value);
    const [oldest] = this.entries.keys();
    if (this.entries.size > this.most && oldest !== undefined) this.entries.delete(oldest);
  }
}

type FetchCounter = (
  track: number,
  level: number,
  tile: number,
  signal: AbortSignal,
) => Promise<TimelineCounter>;

const MOST_COUNTER_TILES = 400;
const COARSER_LEVELS = 42;

const keyOf = (track: number, level: number, tile: number): string => `${track} ${level} ${tile}`;

/** Curves of counters, by tile: the lowest, the highest and the last value of every bucket. */
export class CounterStore {
  private readonly tiles = new RecentlyUsed<string, TimelineCounter>(MOST_COUNTER_TILES);
  private readonly pending = new Map<string, AbortController>();
  private readonly failed = new Set<string>();

  constructor(
    private readonly fetchTile: FetchCounter,
    private readonly changed: () => void,
  ) {}

  /** A tile's buckets, else those of a coarser tile that covers its time; a missing tile is requested. */
  find(track: number, level: number, tile: number): TimelineCounter | null {
    const exact = this.tiles.get(keyOf(track, level, tile));
    if (exact) return exact;
    this.load(track, level, tile);
    for (let up = 1; up <= COARSER_LEVELS; up += 1) {
      const coarser = this.tiles.get(keyOf(track, level + up, Math.floor(tile / 2 ** up)));
      if (coarser) return coarser;
    }
    return null;
  }

  private load(track: number, level: number, tile: number): void {
    const key = keyOf(track, level, tile);
    if (this.pending.has(key) || this.failed.has(key)) return;
    const abort = new AbortController();
    this.pending.set(key, abort);
    this.fetchTile(track, level, tile, abort.signal)
      .then((buckets) => {
        this.tiles.set(key, buckets);
        this.changed();
      })
      .catch(() => {
        if (!abort.signal.aborted) this.failed.add(key);
      })
      .finally(() => this.pending.delete(key));
  }

  dispose(): void {
    for (const abort of this.pending.values()) abort.abort();
    this.pending.clear();
  }
}

const REST_MS = 90;
const MOST_DETAILS = 500;

/** Exact details of slices that the pointer rests on, one request each. */
export class DetailsStore {
  private readonly details = new RecentlyUsed<number, SliceDetails>(MOST_DETAILS);
  private hovered: number | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private abort: AbortController | null = null;

  constructor(
    private readonly fetchDetails: (event: number, signal: AbortSignal) => Promise<SliceDetails>,
    private readonly changed: () => void,
  ) {}

  /** The details of an event; they are requested once the pointer stays on it. */
  find = (event: number): SliceDetails | undefined => {
    const details = this.details.get(event);
    if (!details && this.hovered !== event) this.schedule(event);
    return details;
  };

  private schedule(event: number): void {
    clearTimeout(this.timer);
    this.abort?.abort();
    this.hovered = event;
    this.timer = setTimeout(() => void this.load(event), REST_MS);
  }

  private async load(event: number): Promise<void> {
    this.abort = new AbortController();
    try {
      this.details.set(event, await this.fetchDetails(event, this.abort.signal));
      this.changed();
    } catch {
      // The tooltip then shows what the tile holds.
    }
  }

  dispose(): void {
    clearTimeout(this.timer);
    this.abort?.abort();
    this.hovered = null;
  }
}
