/** Tiles of slices in the format TLT2 (`api/timeline`): columns that are read in place. */

/** The event of slices that are not in the file: idle times by cause, steps made of device work. */
export const NO_EVENT = 0xffffffff;

export const TILE_PX = 1024;
/** Positions are in sixteenths of a pixel. */
export const PX_PARTS = 16;
export const TILE_PARTS = TILE_PX * PX_PARTS;

const MAGIC = 'TLT2';
const ALIGNMENT = 8;

/** Columns of the slices of a tile. A slice merges `count` events; name and event are those of the longest. */
export interface Slices {
  readonly name: Uint32Array;
  readonly event: Uint32Array;
  readonly count: Uint32Array;
  readonly x: Uint16Array;
  readonly width: Uint16Array;
  readonly category: Uint8Array;
  readonly busy: Uint8Array;
}

/** Indexes of the slices of a row, end exclusive. */
export interface RowSpan {
  readonly from: number;
  readonly to: number;
}

export interface Tile {
  readonly level: number;
  readonly tile: number;
  readonly bytes: number;
  readonly slices: Slices;
  /** By track, then row; undefined for a row without slices. */
  readonly rows: ReadonlyMap<number, readonly (RowSpan | undefined)[]>;
  /** Whether the last requested tracks are left out, since the response would be too large. */
  readonly isTruncated: boolean;
}

interface Header {
  readonly level: number;
  readonly tile: number;
  readonly slice_count: number;
  readonly is_truncated?: boolean;
  readonly rows: readonly {
    readonly track: number;
    readonly row: number;
    readonly count: number;
  }[];
}

function headerOf(buffer: ArrayBuffer): { header: Header; dataAt: number } {
  const magic = new TextDecoder().decode(new Uint8Array(buffer, 0, Math.min(4, buffer.byteLength)));
  if (magic !== MAGIC) throw new Error(`This is not a timeline tile: it begins with “${magic}”.`);
  const length = new DataView(buffer).getUint32(4, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length))) as Header;
  return { header, dataAt: Math.ceil((8 + length) / ALIGNMENT) * ALIGNMENT };
}

function slicesOf(buffer: ArrayBuffer, dataAt: number, count: number): Slices {
  let at = dataAt;
  const next = (bytes: number): number => {
    const here = at;
    at += bytes * count;
    return here;
  };
  return {
    name: new Uint32Array(buffer, next(4), count),
    event: new Uint32Array(buffer, next(4), count),
    count: new Uint32Array(buffer, next(4), count),
    x: new Uint16Array(buffer, next(2), count),
    width: new Uint16Array(buffer, next(2), count),
    category: new Uint8Array(buffer, next(1), count),
    busy: new Uint8Array(buffer, next(1), count),
  };
}

function rowsOf(header: Header): Map<number, (RowSpan | undefined)[]> {
  const rows = new Map<number, (RowSpan | undefined)[]>();
  let from = 0;
  for (const { track, row, count } of header.rows) {
    const trackRows = rows.get(track) ?? [];
    trackRows[row] = { from, to: from + count };
    rows.set(track, trackRows);
    from += count;
  }
  return rows;
}

export function decodeTile(buffer: ArrayBuffer): Tile {
  const { header, dataAt } = headerOf(buffer);
  return {
    level: header.level,
    tile: header.tile,
    bytes: buffer.byteLength,
    slices: slicesOf(buffer, dataAt, header.slice_count),
    rows: rowsOf(header),
    isTruncated: header.is_truncated ?? false,
  };
}

/** The level whose pixel is at most one pixel of the screen and more than half of one. */
export const levelOf = (nsPerPx: number): number => Math.max(0, Math.floor(Math.log2(nsPerPx)));

/** The level to draw: of those that there are (empty: all), the coarsest that is fine enough, else the finest. */
export function levelAmong(levels: readonly number[], nsPerPx: number): number {
  const wanted = levelOf(nsPerPx);
  if (levels.length === 0) return wanted;
  const fine = levels.filter((level) => level <= wanted);
  return fine.length > 0 ? Math.max(...fine) : Math.min(...levels);
}

export const tileNs = (level: number): number => TILE_PX * 2 ** level;

/** The first and the last tile of a level that cover a time range. */
export function tilesOf(
  level: number,
  range: { readonly start: number; readonly end: number },
): { readonly first: number; readonly last: number } {
  const length = tileNs(level);
  const first = Math.max(0, Math.floor(range.start / length));
  return { first, last: Math.max(first, Math.ceil(range.end / length) - 1) };
}

/** The first slice of a row that ends after a position; slices of a row do not overlap. */
export function firstEndingAfter(slices: Slices, { from, to }: RowSpan, part: number): number {
  let [low, high] = [from, to];
  while (low < high) {
    const middle = (low + high) >>> 1;
    const end = (slices.x[middle] ?? 0) + (slices.width[middle] ?? 0);
    if (end > part) high = middle;
    else low = middle + 1;
  }
  return low;
}
