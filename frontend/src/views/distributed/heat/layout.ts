/** The layout of a heat map, and the cell under a point. Pure. */
import type { Range } from '../../../canvas/viewport';

export const GUTTER_PX = 88;
export const HEAD_PX = 24;
const RIGHT_PX = 2;

export interface Layout {
  readonly plotWidthPx: number;
  readonly plotHeightPx: number;
  readonly linePx: number;
  readonly columnPx: number;
}

export interface Cell {
  readonly line: number;
  readonly column: number;
}

interface Sized {
  readonly widthPx: number;
  readonly heightPx: number;
}

export function layoutOf(size: Sized, view: Range, columns: number): Layout {
  const plotWidthPx = Math.max(1, size.widthPx - GUTTER_PX - RIGHT_PX);
  const plotHeightPx = Math.max(1, size.heightPx - HEAD_PX);
  return {
    plotWidthPx,
    plotHeightPx,
    linePx: plotHeightPx / Math.max(1e-9, view.end - view.start),
    columnPx: plotWidthPx / Math.max(1, columns),
  };
}

interface Point {
  readonly x: number;
  readonly y: number;
}

/** The cell under a point; null outside of the plot. */
export function cellAt(layout: Layout, view: Range, point: Point): Cell | null {
  const x = point.x - GUTTER_PX;
  const y = point.y - HEAD_PX;
  if (x < 0 || y < 0 || x >= layout.plotWidthPx || y >= layout.plotHeightPx) return null;
  return {
    line: Math.floor(view.start + y / layout.linePx),
    column: Math.floor(x / layout.columnPx),
  };
}

const LEAST_LINES = 8;

export function clampedLines(start: number, length: number, count: number): Range {
  const from = Math.min(Math.max(0, start), Math.max(0, count - length));
  return { start: from, end: from + length };
}

/** Zooms around a line that stays in its position. */
export function zoomedLines(view: Range, at: number, factor: number, count: number): Range {
  const zoomedLength = (view.end - view.start) * factor;
  const length = Math.min(count, Math.max(Math.min(LEAST_LINES, count), zoomedLength));
  const share = (at - view.start) / (view.end - view.start);
  return clampedLines(at - share * length, length, count);
}

/** The view, scrolled as little as needed to show a line. */
export function revealedLine(view: Range, line: number, count: number): Range {
  const length = view.end - view.start;
  if (line < view.start) return clampedLines(line, length, count);
  return line + 1 > view.end ? clampedLines(line + 1 - length, length, count) : view;
}

/** Parses `12-40` from the URL; all lines if it is invalid. */
export function linesFrom(text: string | undefined, count: number): Range {
  const match = /^(\d+)-(\d+)$/.exec(text ?? '');
  const [start, end] = [Number(match?.[1]), Number(match?.[2])];
  if (!match || end <= start || start >= count) return { start: 0, end: Math.max(1, count) };
  return clampedLines(start, Math.min(end - start, count), count);
}

const ROUND = [1, 2, 4, 5, 8, 10, 16, 20, 25, 32, 50, 64, 100, 128, 200, 256, 500, 512, 1000];

/** The least round step between labels that keeps them apart. */
export const everyNth = (itemPx: number, leastPx: number): number =>
  ROUND.find((step) => step * itemPx >= leastPx) ?? Math.ceil(leastPx / itemPx);

const LEAST_PX = 110;
const MOST_PX = 470;
const USUAL_LINE_PX = 20;

/** The height for a number of lines, within limits. */
export const heightOf = (lines: number): number =>
  Math.round(Math.min(MOST_PX, Math.max(LEAST_PX, lines * USUAL_LINE_PX + HEAD_PX)));
