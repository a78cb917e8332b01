/** Tiles that were fetched: the least recently drawn go when there are too many bytes of them. */
import { decodeTile, type Tile, tileNs } from './tiles';

export type FetchTile = (
  tracks: readonly number[],
  level: number,
  tile: number,
  signal: AbortSignal,
) => Promise<ArrayBuffer>;

/** Tracks wanted of one tile. */
export interface Wanted {
  readonly level: number;
  readonly tile: number;
  readonly tracks: readonly number[];
  /** True where nobody waits for it: it may be wanted next. */
  readonly isAhead?: boolean;
}

interface Entry {
  readonly tile: Tile;
  readonly tracks: readonly number[];
  used: number;
}

interface Flight {
  readonly wanted: Wanted;
  readonly abort: AbortController;
}

interface Limits {
  readonly bytes: number;
  readonly atOnce: number;
  readonly retryMs: number;
}

const LIMITS: Limits = { bytes: 64e6, atOnce: 4, retryMs: 2000 };

/** The tracks that an answer has in full; where it was cut, the last that it has may lack rows. */
function answered(tile: Tile, tracks: readonly number[]): readonly number[] {
  if (!tile.isTruncated) return tracks;
  const last = tracks.findLastIndex((track) => tile.rows.has(track));
  // A track that does not fit alone is shown as far as it goes.
  return tracks.slice(0, Math.max(1, last));
}

const keyOf = (track: number, level: number, tile: number): string => `${track} ${level} ${tile}`;

/** A part of a row that a tile can fill; ns, the end not in it. */
export interface Segment {
  readonly tile: Tile;
  readonly startNs: number;
  readonly endNs: number;
  /** False where it stands in for the tile that is wanted. */
  readonly isExact: boolean;
}

const COARSER_LEVELS = 42;
const FINER_LEVELS = 3;

export class TileStore {
  private readonly byKey = new Map<string, Entry>();
  private readonly entries = new Set<Entry>();
  private readonly flights = new Set<Flight>();
  private queue: readonly Wanted[] = [];
  private bytes = 0;
  private clock = 0;
  private failedAtMs = Number.NEGATIVE_INFINITY;
  private timer: ReturnType<typeof setTimeout> | undefined;
  /** Why the last request failed; null once one has come. */
  failure: Error | null = null;

  constructor(
    private readonly fetchTile: FetchTile,
    private readonly changed: () => void,
    private readonly limits: Limits = LIMITS,
  ) {}

  get heldBytes(): number {
    return this.bytes;
  }

  /** True while something that is in sight is on its way. */
  private get isAwaited(): boolean {
    for (const { wanted } of this.flights) if (!wanted.isAhead) return true;
    return false;
  }

  /** A new drawing begins: what it uses counts as used now. */
  tick(): void {
    this.clock += 1;
  }

  has(track: number, level: number, tile: number): boolean {
    return this.byKey.has(keyOf(track, level, tile));
  }

  private find(track: number, level: number, tile: number): Tile | undefined {
    const entry = this.byKey.get(keyOf(track, level, tile));
    if (entry) entry.used = this.clock;
    return entry?.tile;
  }

  /** What there is to fill a tile of a track with: itself, else a coarser one with finer ones over it. */
  segments(track: number, level: number, tile: number): Segment[] {
    const length = tileNs(level);
    const place = { startNs: tile * length, endNs: (tile + 1) * length };
    const exact = this.find(track, level, tile);
    if (exact) return [{ tile: exact, ...place, isExact: true }];
    const found: Segment[] = [];
    for (let up = 1; up <= COARSER_LEVELS; up += 1) {
      const coarser = this.find(track, level + up, Math.floor(tile / 2 ** up));
      if (!coarser) continue;
      found.push({ tile: coarser, ...place, isExact: false });
      break;
    }
    for (let down = Math.min(FINER_LEVELS, level); down >= 1; down -= 1) {
      found.push(...this.finer(track, level - down, { first: tile * 2 ** down, count: 2 ** down }));
    }
    return found;
  }

  private finer(
    track: number,
    level: number,
    { first, count }: { readonly first: number; readonly count: number },
  ): Segment[] {
    const length = tileNs(level);
    const found: Segment[] = [];
    for (let tile = first; tile < first + count; tile += 1) {
      const here = this.find(track, level, tile);
      if (here) {
        found.push({
          tile: here,
          startNs: tile * length,
          endNs: (tile + 1) * length,
          isExact: false,
        });
      }
    }
    return found;
  }

  /** What is to be there, the most urgent first. What was asked for and is no longer wanted is let go. */
  want(wanted: readonly Wanted[]): void {
    this.queue = wanted;
    for (const flight of this.flights) {
      const { level, tile } = flight.wanted;
      if (wanted.some((each) => each.level === level && each.tile === tile)) continue;
      flight.abort.abort();
      this.flights.delete(flight);
    }
    this.start();
  }

  private isComing(track: number, { level, tile }: Wanted): boolean {
    for (const { wanted } of this.flights) {
      if (wanted.level === level && wanted.tile === tile && wanted.tracks.includes(track))
        return true;
    }
    return false;
  }

  private start(): void {
    if (performance.now() - this.failedAtMs < this.limits.retryMs) return;
    for (const wanted of this.queue) {
      if (this.flights.size >= this.limits.atOnce) return;
      const { level, tile, isAhead = false } = wanted;
      if (isAhead && this.isAwaited) return;
      const tracks = wanted.tracks.filter(
        (track) => !(this.has(track, level, tile) || this.isComing(track, wanted)),
      );
      if (tracks.length > 0) void this.fetch({ level, tile, tracks, isAhead });
    }
  }

  private async fetch(wanted: Wanted): Promise<void> {
    const flight: Flight = { wanted, abort: new AbortController() };
    this.flights.add(flight);
    const { tracks, level, tile } = wanted;
    try {
      const buffer = await this.fetchTile(tracks, level, tile, flight.abort.signal);
      if (flight.abort.signal.aborted) return;
      const made = decodeTile(buffer);
      if (made.level !== level || made.tile !== tile) {
        throw new Error('The server answered with another tile.');
      }
      this.keep(made, answered(made, tracks));
      this.failure = null;
    } catch (error) {
      if (flight.abort.signal.aborted) return;
      this.failed(error instanceof Error ? error : new Error(String(error)));
    } finally {
      this.flights.delete(flight);
    }
    this.start();
    this.changed();
  }

  /** The server may come back: what is still wanted is asked for again after a while. */
  private failed(error: Error): void {
    this.failure = error;
    this.failedAtMs = performance.now();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.start(), this.limits.retryMs + 1);
  }

  private keep(tile: Tile, tracks: readonly number[]): void {
    const entry: Entry = { tile, tracks, used: this.clock };
    this.entries.add(entry);
    this.bytes += tile.bytes;
    for (const track of tracks) this.byKey.set(keyOf(track, tile.level, tile.tile), entry);
    this.evict();
  }

  private evict(): void {
    if (this.bytes <= this.limits.bytes) return;
    const oldest = [...this.entries].sort((a, b) => a.used - b.used);
    for (const entry of oldest) {
      // What is on the screen stays, however much it is.
      if (this.bytes <= this.limits.bytes || entry.used >= this.clock) return;
      this.drop(entry);
    }
  }

  private drop(entry: Entry): void {
    const { tile, tracks } = entry;
    this.entries.delete(entry);
    this.bytes -= tile.bytes;
    for (const track of tracks) {
      const key = keyOf(track, tile.level, tile.tile);
      if (this.byKey.get(key) === entry) this.byKey.delete(key);
    }
  }

  dispose(): void {
    clearTimeout(this.timer);
    for (const flight of this.flights) flight.abort.abort();
    this.flights.clear();
    this.queue = [];
  }
}
