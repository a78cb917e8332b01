/** Fetched tiles; the least recently drawn ones are evicted above a limit of bytes. */
import { decodeTile, type Tile, tileNs } from './tiles';

export type FetchTile = (
  tracks: readonly number[],
  level: number,
  tile: number,
  signal: AbortSignal,
) => Promise<ArrayBuffer>;

/** A request for the tracks of one tile. */
export interface TileRequest {
  readonly level: number;
  readonly tile: number;
  readonly tracks: readonly number[];
  /** Whether it is a prefetch. */
  readonly isAhead?: boolean;
}

interface Entry {
  readonly tile: Tile;
  readonly tracks: readonly number[];
  used: number;
}

interface Flight {
  readonly requested: TileRequest;
  readonly abort: AbortController;
}

interface Limits {
  readonly bytes: number;
  readonly atOnce: number;
  readonly retryMs: number;
}

const LIMITS: Limits = { bytes: 64e6, atOnce: 4, retryMs: 2000 };

/** The tracks that a tile holds completely; in a truncated one the last track may lack rows. */
function completeTracks(tile: Tile, tracks: readonly number[]): readonly number[] {
  if (!tile.isTruncated) return tracks;
  const last = tracks.findLastIndex((track) => tile.rows.has(track));
  // A track that exceeds a response alone is shown as far as it goes.
  return tracks.slice(0, Math.max(1, last));
}

const keyOf = (track: number, level: number, tile: number): string => `${track} ${level} ${tile}`;

/** A part of a row that a tile covers; ns, end exclusive. */
export interface Segment {
  readonly tile: Tile;
  readonly startNs: number;
  readonly endNs: number;
  /** False if it replaces a missing tile. */
  readonly isExact: boolean;
}

const COARSER_LEVELS = 42;
const FINER_LEVELS = 3;

export class TileStore {
  private readonly byKey = new Map<string, Entry>();
  private readonly entries = new Set<Entry>();
  private readonly flights = new Set<Flight>();
  private queue: readonly TileRequest[] = [];
  private bytes = 0;
  private clock = 0;
  private failedAtMs = Number.NEGATIVE_INFINITY;
  private timer: ReturnType<typeof setTimeout> | undefined;
  /** The error of the last request; null after a success. */
  failure: Error | null = null;

  constructor(
    private readonly fetchTile: FetchTile,
    private readonly changed: () => void,
    private readonly limits: Limits = LIMITS,
  ) {}

  get sizeBytes(): number {
    return this.bytes;
  }

  /** Whether a request for visible tiles is pending. */
  private get isAwaited(): boolean {
    for (const { requested } of this.flights) if (!requested.isAhead) return true;
    return false;
  }

  /** Starts a new drawing: tiles that it uses count as used now. */
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

  /** The segments that cover a tile of a track: itself, else a coarser tile with finer ones over it. */
  segments(track: number, level: number, tile: number): Segment[] {
    const length = tileNs(level);
    const times = { startNs: tile * length, endNs: (tile + 1) * length };
    const exact = this.find(track, level, tile);
    if (exact) return [{ tile: exact, ...times, isExact: true }];
    const segments: Segment[] = [];
    for (let up = 1; up <= COARSER_LEVELS; up += 1) {
      const coarser = this.find(track, level + up, Math.floor(tile / 2 ** up));
      if (!coarser) continue;
      segments.push({ tile: coarser, ...times, isExact: false });
      break;
    }
    for (let down = Math.min(FINER_LEVELS, level); down >= 1; down -= 1) {
      segments.push(
        ...this.finer(track, level - down, { first: tile * 2 ** down, count: 2 ** down }),
      );
    }
    return segments;
  }

  private finer(
    track: number,
    level: number,
    { first, count }: { readonly first: number; readonly count: number },
  ): Segment[] {
    const length = tileNs(level);
    const segments: Segment[] = [];
    for (let tile = first; tile < first + count; tile += 1) {
      const here = this.find(track, level, tile);
      if (here) {
        segments.push({
          tile: here,
          startNs: tile * length,
          endNs: (tile + 1) * length,
          isExact: false,
        });
      }
    }
    return segments;
  }

  /** Replaces the queue of requests, the most urgent first; pending requests outside of it are aborted. */
  request(requested: readonly TileRequest[]): void {
    this.queue = requested;
    for (const flight of this.flights) {
      const { level, tile } = flight.requested;
      if (requested.some((request) => request.level === level && request.tile === tile)) continue;
      flight.abort.abort();
      this.flights.delete(flight);
    }
    this.start();
  }

  private isComing(track: number, { level, tile }: TileRequest): boolean {
    for (const { requested } of this.flights) {
      if (requested.level === level && requested.tile === tile && requested.tracks.includes(track))
        return true;
    }
    return false;
  }

  private start(): void {
    if (performance.now() - this.failedAtMs < this.limits.retryMs) return;
    for (const requested of this.queue) {
      if (this.flights.size >= this.limits.atOnce) return;
      const { level, tile, isAhead = false } = requested;
      if (isAhead && this.isAwaited) return;
      const tracks = requested.tracks.filter(
        (track) => !(this.has(track, level, tile) || this.isComing(track, requested)),
      );
      if (tracks.length > 0) void this.fetch({ level, tile, tracks, isAhead });
    }
  }

  private async fetch(requested: TileRequest): Promise<void> {
    const flight: Flight = { requested, abort: new AbortController() };
    this.flights.add(flight);
    const { tracks, level, tile } = requested;
    try {
      const buffer = await this.fetchTile(tracks, level, tile, flight.abort.signal);
      if (flight.abort.signal.aborted) return;
      const made = decodeTile(buffer);
      if (made.level !== level || made.tile !== tile) {
        throw new Error('The server answered with another tile.');
      }
      this.store(made, completeTracks(made, tracks));
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

  /** Retries after a while: the server may come back. */
  private failed(error: Error): void {
    this.failure = error;
    this.failedAtMs = performance.now();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.start(), this.limits.retryMs + 1);
  }

  private store(tile: Tile, tracks: readonly number[]): void {
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
      // Visible tiles stay, however large.
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
