/** Curves of counters, by tile: the least, the greatest and the last value of every bucket. */
import type { TimelineCounter } from '../../api/types.gen';

type Fetch = (
  track: number,
  level: number,
  tile: number,
  signal: AbortSignal,
) => Promise<TimelineCounter>;

const MOST_TILES = 400;
const COARSER_LEVELS = 42;

const keyOf = (track: number, level: number, tile: number): string => `${track} ${level} ${tile}`;

export class CounterStore {
  private readonly held = new Map<string, TimelineCounter>();
  private readonly coming = new Map<string, AbortController>();
  private readonly failed = new Set<string>();

  constructor(
    private readonly fetchBuckets: Fetch,
    private readonly changed: () => void,
  ) {}

  /** A tile's buckets, else those of a coarser tile that has its time in it; what is missing is asked for. */
  find(track: number, level: number, tile: number): TimelineCounter | null {
    const exact = this.touch(keyOf(track, level, tile));
    if (exact) return exact;
    this.ask(track, level, tile);
    for (let up = 1; up <= COARSER_LEVELS; up += 1) {
      const found = this.touch(keyOf(track, level + up, Math.floor(tile / 2 ** up)));
      if (found) return found;
    }
    return null;
  }

  private touch(key: string): TimelineCounter | undefined {
    const found = this.held.get(key);
    if (found) {
      // The order of a Map is that of insertion: what was used last stands last.
      this.held.delete(key);
      this.held.set(key, found);
    }
    return found;
  }

  private ask(track: number, level: number, tile: number): void {
    const key = keyOf(track, level, tile);
    if (this.coming.has(key) || this.failed.has(key)) return;
    const abort = new AbortController();
    this.coming.set(key, abort);
    this.fetchBuckets(track, level, tile, abort.signal)
      .then((buckets) => {
        this.held.set(key, buckets);
        const [oldest] = this.held.keys();
        if (this.held.size > MOST_TILES && oldest !== undefined) this.held.delete(oldest);
        this.changed();
      })
      .catch(() => {
        if (!abort.signal.aborted) this.failed.add(key);
      })
      .finally(() => this.coming.delete(key));
  }

  dispose(): void {
    for (const abort of this.coming.values()) abort.abort();
    this.coming.clear();
  }
}
