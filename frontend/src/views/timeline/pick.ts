/** The slice at a point, from the tiles: exact to a sixteenth of a pixel. Pure. */
import type { Segment, TileStore } from './tile_store';
import {
  firstEndingAfter,
  NO_EVENT,
  PX_PARTS,
  type Slices,
  TILE_PARTS,
  type Tile,
  tileNs,
} from './tiles';

export interface Picked {
  readonly track: number;
  readonly row: number;
  readonly name: number;
  readonly event: number;
  /** Number of merged events. */
  readonly count: number;
  readonly category: number;
  /** Busy fraction, 0 to 1. */
  readonly busy: number;
  readonly startNs: number;
  readonly endNs: number;
}

export interface Spot {
  readonly track: number;
  readonly row: number;
  readonly timeNs: number;
  readonly level: number;
  /** Distance from a slice that still picks it. */
  readonly toleranceNs: number;
}

interface SliceIndex {
  readonly tile: Tile;
  readonly at: number;
}

const partNs = (tile: Tile): number => 2 ** tile.level / PX_PARTS;

const startOf = ({ tile, at }: SliceIndex): number =>
  tile.tile * tileNs(tile.level) + (tile.slices.x[at] ?? 0) * partNs(tile);

const endOf = (match: SliceIndex): number =>
  startOf(match) + (match.tile.slices.width[match.at] ?? 0) * partNs(match.tile);

function distance(match: SliceIndex, timeNs: number): number {
  return Math.max(0, startOf(match) - timeNs, timeNs - endOf(match));
}

function inSegment({ tile }: Segment, spot: Spot): SliceIndex | null {
  const span = tile.rows.get(spot.track)?.[spot.row];
  if (!span) return null;
  const part = (spot.timeNs - tile.tile * tileNs(tile.level)) / partNs(tile);
  const at = firstEndingAfter(tile.slices, span, part);
  const near = [at, at - 1]
    .filter((index) => index >= span.from && index < span.to)
    .map((index) => ({ tile, at: index }))
    .sort((a, b) => distance(a, spot.timeNs) - distance(b, spot.timeNs));
  const [best] = near;
  return best && distance(best, spot.timeNs) <= spot.toleranceNs ? best : null;
}

const isSame = (a: Slices, atA: number, b: Slices, atB: number): boolean =>
  a.event[atA] === b.event[atB] && a.name[atA] === b.name[atB];

const MOST_TILES = 64;

/** The range of a slice across the loaded neighbouring tiles. */
function joined(
  store: TileStore,
  match: SliceIndex,
  spot: Spot,
): { startNs: number; endNs: number } {
  let [startNs, endNs] = [startOf(match), endOf(match)];
  const { level, slices } = match.tile;
  const pieceIn = (index: number, isLast: boolean): SliceIndex | null => {
    const [segment] = store.segments(spot.track, level, index);
    const span = segment?.isExact ? segment.tile.rows.get(spot.track)?.[spot.row] : undefined;
    if (!(segment && span)) return null;
    const at = isLast ? span.to - 1 : span.from;
    return isSame(segment.tile.slices, at, slices, match.at) ? { tile: segment.tile, at } : null;
  };
  const touchesStart = ({ tile, at }: SliceIndex): boolean => tile.slices.x[at] === 0;
  const touchesEnd = ({ tile, at }: SliceIndex): boolean =>
    (tile.slices.x[at] ?? 0) + (tile.slices.width[at] ?? 0) === TILE_PARTS;
  let piece: SliceIndex | null = match;
  for (let n = 1; n <= MOST_TILES && piece && touchesStart(piece); n += 1) {
    piece = pieceIn(match.tile.tile - n, true);
    if (piece && touchesEnd(piece)) startNs = startOf(piece);
    else piece = null;
  }
  piece = match;
  for (let n = 1; n <= MOST_TILES && piece && touchesEnd(piece); n += 1) {
    piece = pieceIn(match.tile.tile + n, false);
    if (piece && touchesStart(piece)) endNs = endOf(piece);
    else piece = null;
  }
  return { startNs, endNs };
}

/** The slice at a point, or the nearest one within the tolerance. */
export function pick(store: TileStore, spot: Spot): Picked | null {
  const tile = Math.floor(spot.timeNs / tileNs(spot.level));
  // Of several segments that replace a missing tile the last is the finest.
  const covering = store
    .segments(spot.track, spot.level, tile)
    .filter(({ startNs, endNs }) => startNs <= spot.timeNs && spot.timeNs < endNs);
  const segment = covering.at(-1);
  const match = segment && inSegment(segment, spot);
  if (!match) return null;
  const { slices } = match.tile;
  const { at } = match;
  return {
    track: spot.track,
    row: spot.row,
    name: slices.name[at] ?? 0,
    event: slices.event[at] ?? NO_EVENT,
    count: slices.count[at] ?? 1,
    category: slices.category[at] ?? 0,
    busy: (slices.busy[at] ?? 255) / 255,
    ...joined(store, match, spot),
  };
}

export const isSamePick = (a: Picked | null, b: Picked | null): boolean =>
  a === b ||
  (a !== null &&
    b !== null &&
    a.track === b.track &&
    a.row === b.row &&
    a.event === b.event &&
    a.startNs === b.startNs);
