/** Paints a row of slices into a line of pixels, and lists its labels and merged runs. Pure. */
import type { Theme } from '../../canvas/colours';
import type { PixelRows } from '../../canvas/strips';
import { perPx, type Range } from '../../canvas/viewport';
import { dimmed, type Palette, thinned } from './palette';
import type { Segment, TileStore } from './tile_store';
import { firstEndingAfter, NO_EVENT, PX_PARTS, TILE_PARTS, tileNs, tilesOf } from './tiles';

/** A slice wide enough for a label; device pixels, which may lie outside of the screen. */
export interface Label {
  readonly line: number;
  readonly name: number;
  readonly fromPx: number;
  readonly toPx: number;
  readonly isDim: boolean;
}

/** A run of slices that merge many events each. */
export interface MergedRun {
  readonly line: number;
  readonly fromPx: number;
  readonly toPx: number;
}

export interface Painting {
  readonly store: TileStore;
  readonly palette: Palette;
  readonly theme: Theme;
  readonly view: Range;
  readonly level: number;
  readonly pixels: PixelRows;
  readonly labels: Label[];
  readonly merged: MergedRun[];
  /** Least width of a labelled slice, device pixels. */
  readonly leastLabelPx: number;
  /** Flags by name code, 1 if highlighted; null without a search. */
  readonly highlightedNames: Uint8Array | null;
  /** Highlighted events; null without a finding. */
  readonly highlightedEvents: ReadonlySet<number> | null;
}

export interface Line {
  readonly line: number;
  readonly track: number;
  readonly row: number;
  readonly hasLabels: boolean;
}

/** Least width of a slice with a gap to the next. */
const GAP_FROM_PX = 3;
const MERGED_FROM_PX = 6;
const MERGED_GAP_PX = 2;

interface Piece {
  readonly event: number;
  readonly name: number;
  readonly fromPx: number;
  readonly isDim: boolean;
  toPx: number;
}

class RowPainter {
  private piece: Piece | null = null;
  private mergedFrom = 0;
  private mergedTo = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly painting: Painting,
    private readonly line: Line,
  ) {}

  private isHighlighted(name: number, event: number): boolean {
    const { highlightedNames, highlightedEvents } = this.painting;
    if (highlightedNames === null && highlightedEvents === null) return true;
    return highlightedNames?.[name] === 1 || highlightedEvents?.has(event) === true;
  }

  segment({ tile, startNs, endNs }: Segment, isAlone: boolean): void {
    const { view, pixels } = this.painting;
    const pxPerNs = 1 / perPx(view, pixels.widthPx);
    const tileStartNs = tile.tile * tileNs(tile.level);
    const cutFrom = Math.max(0, (startNs - view.start) * pxPerNs);
    const cutTo = Math.min(pixels.widthPx, (endNs - view.start) * pxPerNs);
    if (!isAlone) pixels.clear(this.line.line, Math.floor(cutFrom), Math.ceil(cutTo));
    const span = tile.rows.get(this.line.track)?.[this.line.row];
    if (!span) return;
    const nsPerPart = 2 ** tile.level / PX_PARTS;
    const scale = nsPerPart * pxPerNs;
    const offset = (tileStartNs - view.start) * pxPerNs;
    const { slices } = tile;
    const from = firstEndingAfter(slices, span, (cutFrom - offset) / scale);
    for (let at = from; at < span.to; at += 1) {
      const x = offset + (slices.x[at] ?? 0) * scale;
      if (x >= cutTo) break;
      const end = x + (slices.width[at] ?? 0) * scale;
      this.slice(tile.slices, at, Math.max(x, cutFrom), Math.min(end, cutTo));
    }
  }

  private slice(slices: Segment['tile']['slices'], at: number, fromPx: number, toPx: number): void {
    const name = slices.name[at] ?? 0;
    const event = slices.event[at] ?? NO_EVENT;
    const count = slices.count[at] ?? 1;
    const { palette, theme, pixels } = this.painting;
    const isDim = !this.isHighlighted(name, event);
    let colour = palette.colour(theme, slices.category[at] ?? 0, name);
    const busy = slices.busy[at] ?? 255;
    if (busy < 255) colour = thinned(colour, busy);
    if (isDim) colour = dimmed(colour);
    const x = slices.x[at] ?? 0;
    const reachesEnd = x + (slices.width[at] ?? 0) === TILE_PARTS;
    const start = Math.floor(fromPx + 0.001);
    const end = Math.max(start + 1, Math.round(toPx));
    const isCut = reachesEnd || end >= pixels.widthPx;
    const gap = end - start >= GAP_FROM_PX && !isCut ? 1 : 0;
    pixels.run(this.line.line, start, end - gap, colour);
    if (count > 1) this.mergedAt(fromPx, toPx);
    if (!this.line.hasLabels) return;
    this.piecesTo({ event, name, fromPx, toPx, isDim }, x === 0, reachesEnd);
  }

  /** Joins the parts of one slice in two tiles. */
  private piecesTo(piece: Piece, beginsTile: boolean, reachesEnd: boolean): void {
    const { piece: open } = this;
    const goesOn =
      open !== null && beginsTile && open.event === piece.event && open.name === piece.name;
    if (goesOn) open.toPx = piece.toPx;
    else {
      this.flushPiece();
      const isWide = piece.toPx - piece.fromPx >= this.painting.leastLabelPx;
      if (reachesEnd || isWide) this.piece = piece;
    }
    if (!reachesEnd) this.flushPiece();
  }

  private flushPiece(): void {
    const { piece, painting, line } = this;
    this.piece = null;
    if (!piece || piece.toPx - piece.fromPx < painting.leastLabelPx) return;
    const { name, fromPx, toPx, isDim } = piece;
    painting.labels.push({ line: line.line, name, fromPx, toPx, isDim });
  }

  private mergedAt(fromPx: number, toPx: number): void {
    if (fromPx - this.mergedTo > MERGED_GAP_PX) {
      this.flushMerged();
      this.mergedFrom = fromPx;
    }
    this.mergedTo = toPx;
  }

  private flushMerged(): void {
    if (this.mergedTo - this.mergedFrom < MERGED_FROM_PX) return;
    const { line } = this.line;
    this.painting.merged.push({ line, fromPx: this.mergedFrom, toPx: this.mergedTo });
  }

  end(): void {
    this.flushPiece();
    this.flushMerged();
  }
}

export function paintRow(painting: Painting, line: Line): void {
  const { store, level, view } = painting;
  const painter = new RowPainter(painting, line);
  const { first, last } = tilesOf(level, view);
  for (let tile = first; tile <= last; tile += 1) {
    const segments = store.segments(line.track, level, tile);
    for (const segment of segments) painter.segment(segment, segments.length === 1);
  }
  painter.end();
}
