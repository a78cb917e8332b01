/** Tiles as the server sends them, made slowly from a list of slices: the reference for drawing. */
import type { FetchTile } from '../src/views/timeline/tile_store';
import { NO_EVENT, PX_PARTS, TILE_PARTS, tileNs } from '../src/views/timeline/tiles';

/** An event, or an idle time without one. */
export interface MadeSlice {
  readonly track: number;
  readonly row: number;
  readonly startNs: number;
  readonly endNs: number;
  readonly name: number;
  readonly category?: number;
  readonly event?: number;
}

interface Column {
  readonly x: number;
  readonly width: number;
  readonly name: number;
  readonly event: number;
  readonly count: number;
  readonly category: number;
  readonly busy: number;
}

const eventOf = (slice: MadeSlice): number => slice.event ?? NO_EVENT;
const lengthOf = (slice: MadeSlice): number => slice.endNs - slice.startNs;

function whole(slice: MadeSlice, startNs: number, partNs: number): Column {
  const from = Math.max(0, Math.round((slice.startNs - startNs) / partNs));
  const to = Math.min(TILE_PARTS, Math.round((slice.endNs - startNs) / partNs));
  const { name, category = 0 } = slice;
  return { x: from, width: to - from, name, event: eventOf(slice), count: 1, category, busy: 255 };
}

function merged(slices: readonly MadeSlice[], px: number, level: number): Column {
  const longest = slices.reduce((a, b) => (lengthOf(b) > lengthOf(a) ? b : a));
  const busyNs = slices.reduce((sum, slice) => sum + lengthOf(slice), 0);
  return {
    x: px * PX_PARTS,
    width: PX_PARTS,
    name: longest.name,
    event: eventOf(longest),
    count: slices.length,
    category: longest.category ?? 0,
    busy: Math.min(255, Math.round((255 * busyNs) / 2 ** level)),
  };
}

/** A row of a tile: slices of a pixel or more unchanged, shorter ones merged per pixel. */
function columnsOf(slices: readonly MadeSlice[], level: number, tile: number): Column[] {
  const startNs = tile * tileNs(level);
  const inside = slices.filter(
    (slice) => slice.endNs > startNs && slice.startNs < startNs + tileNs(level),
  );
  const long = inside.filter((slice) => lengthOf(slice) >= 2 ** level);
  const byPx = new Map<number, MadeSlice[]>();
  for (const slice of inside.filter((candidate) => !long.includes(candidate))) {
    const px = Math.max(0, Math.floor((slice.startNs - startNs) / 2 ** level));
    byPx.set(px, [...(byPx.get(px) ?? []), slice]);
  }
  const short = [...byPx].map(([px, group]) => merged(group, px, level));
  const columns = [...long.map((slice) => whole(slice, startNs, 2 ** level / PX_PARTS)), ...short];
  return columns.filter((column) => column.width > 0).sort((a, b) => a.x - b.x);
}

export function encodeTile(
  slices: readonly MadeSlice[],
  tracks: readonly number[],
  level: number,
  tile: number,
): ArrayBuffer {
  const rows: { track: number; row: number; count: number }[] = [];
  const columns: Column[] = [];
  for (const track of tracks) {
    const group = slices.filter((slice) => slice.track === track);
    for (const row of [...new Set(group.map((slice) => slice.row))].sort((a, b) => a - b)) {
      const made = columnsOf(
        group.filter((slice) => slice.row === row),
        level,
        tile,
      );
      if (made.length > 0) rows.push({ track, row, count: made.length });
      columns.push(...made);
    }
  }
  const header = new TextEncoder().encode(
    JSON.stringify({ level, tile, rows, slice_count: columns.length }),
  );
  const dataAt = Math.ceil((8 + header.length) / 8) * 8;
  const buffer = new ArrayBuffer(dataAt + columns.length * 18);
  const bytes = new Uint8Array(buffer);
  bytes.set(new TextEncoder().encode('TLT2'));
  const view = new DataView(buffer);
  view.setUint32(4, header.length, true);
  bytes.set(header, 8);
  let at = dataAt;
  const write = (size: 1 | 2 | 4, values: readonly number[]): void => {
    for (const value of values) {
      if (size === 4) view.setUint32(at, value, true);
      else if (size === 2) view.setUint16(at, value, true);
      else view.setUint8(at, value);
      at += size;
    }
  };
  write(
    4,
    columns.map((column) => column.name),
  );
  write(
    4,
    columns.map((column) => column.event),
  );
  write(
    4,
    columns.map((column) => column.count),
  );
  write(
    2,
    columns.map((column) => column.x),
  );
  write(
    2,
    columns.map((column) => column.width),
  );
  write(
    1,
    columns.map((column) => column.category),
  );
  write(
    1,
    columns.map((column) => column.busy),
  );
  return buffer;
}

/** A server in memory. */
export const tileSource =
  (slices: readonly MadeSlice[]): FetchTile =>
  (tracks, level, tile) =>
    Promise.resolve(encodeTile(slices, tracks, level, tile));
