/** Draws a heat map: hatching for missing values, cells, labels, and the selection. */
import type { RankSteps } from '../../../api/types.gen';
import type { Frame } from '../../../canvas/surface';
import { fitterOf } from '../../../canvas/text';
import type { Range } from '../../../canvas/viewport';
import { type Line, nameOfLine } from './grid';
import { type Cell, everyNth, GUTTER_PX, HEAD_PX, type Layout, layoutOf } from './layout';
import { type Cells, type Raster, raster } from './raster';

const LABEL_PX = 13;
const HATCH_PX = 6;
const LEAST_OUTLINE_PX = 3;
const LEAST_LATE_PX = 4;
const THIN_PX = 8;

export interface HeatContent {
  readonly cells: Cells;
  readonly steps: RankSteps;
  readonly view: Range;
  readonly colours: Uint32Array;
  /** Rows of late ranks. */
  readonly late: ReadonlySet<number>;
  readonly outlined: readonly (Cell | null)[];
  readonly selectedRow: number | null;
  readonly selectedColumn: number | null;
}

/** Caches the pixels of the cells until their content changes. */
export class HeatPainter {
  private readonly scratch = document.createElement('canvas');
  private painted: readonly unknown[] = [];

  draw(frame: Frame, content: HeatContent): void {
    const layout = layoutOf(frame, content.view, content.cells.grid.columns);
    const { context, tokens } = frame;
    context.save();
    context.beginPath();
    context.rect(GUTTER_PX, HEAD_PX, layout.plotWidthPx, layout.plotHeightPx);
    context.clip();
    hatch(frame, layout);
    this.cells(frame, layout, content);
    this.lateLines(frame, layout, content);
    partLines(frame, layout, content);
    context.restore();
    context.font = `11.5px ${tokens.sans}`;
    lineLabels(frame, layout, content);
    columnLabels(frame, layout, content);
    choices(frame, layout, content);
  }

  private cells(frame: Frame, layout: Layout, content: HeatContent): void {
    const { view, cells, colours } = content;
    const from = Math.floor(view.start);
    const to = Math.min(cells.lines.length, Math.ceil(view.end));
    const heightPx = (to - from) * layout.linePx;
    const size = {
      widthPx: layout.plotWidthPx * frame.ratio,
      heightPx: heightPx * frame.ratio,
    };
    const key = [cells, colours, from, to, Math.floor(size.widthPx), Math.floor(size.heightPx)];
    if (key.some((part, at) => part !== this.painted[at])) {
      this.put(raster(cells, { from, to, size, colours }));
      this.painted = key;
    }
    frame.context.imageSmoothingEnabled = false;
    const y = HEAD_PX + (from - view.start) * layout.linePx;
    frame.context.drawImage(this.scratch, GUTTER_PX, y, layout.plotWidthPx, heightPx);
  }

  /** Thicker lines for late ranks, so that they stay visible among many ranks. */
  private lateLines(frame: Frame, layout: Layout, content: HeatContent): void {
    const { cells, view, colours, late } = content;
    if (layout.linePx >= LEAST_LATE_PX) return;
    const size = { widthPx: layout.plotWidthPx * frame.ratio, heightPx: 1 };
    cells.lines.forEach((line, at) => {
      const isIn = at + 1 > view.start && at < view.end;
      if (line.kind !== 'rank' || !isIn || !late.has(line.row)) return;
      this.put(raster(cells, { from: at, to: at + 1, size, colours }));
      this.painted = [];
      const middle = HEAD_PX + (at + 0.5 - view.start) * layout.linePx;
      const lowest = HEAD_PX + layout.plotHeightPx - LEAST_LATE_PX;
      const y = Math.min(lowest, Math.max(HEAD_PX, middle - LEAST_LATE_PX / 2));
      const { context } = frame;
      context.drawImage(this.scratch, GUTTER_PX, y, layout.plotWidthPx, LEAST_LATE_PX);
    });
  }

  private put({ pixels, widthPx, heightPx }: Raster): void {
    this.scratch.width = widthPx;
    this.scratch.height = heightPx;
    const bytes = new Uint8ClampedArray(pixels.buffer);
    this.scratch.getContext('2d')?.putImageData(new ImageData(bytes, widthPx, heightPx), 0, 0);
  }
}

function hatch({ context, tokens }: Frame, { plotWidthPx, plotHeightPx }: Layout): void {
  context.fillStyle = tokens.sunken;
  context.fillRect(GUTTER_PX, HEAD_PX, plotWidthPx, plotHeightPx);
  context.strokeStyle = tokens.lineStrong;
  context.lineWidth = 1;
  context.beginPath();
  for (let x = -plotHeightPx; x < plotWidthPx; x += HATCH_PX) {
    context.moveTo(GUTTER_PX + x, HEAD_PX + plotHeightPx);
    context.lineTo(GUTTER_PX + x + plotHeightPx, HEAD_PX);
  }
  context.stroke();
}

const hostOf = (line: Line | undefined, steps: RankSteps): string | null =>
  line?.kind === 'rank' ? (steps.hosts[line.row] ?? null) : null;

/** The node or process group of a line. */
function partOf({ cells, steps }: HeatContent, line: Line | undefined): string | number | null {
  if (cells.order !== 'group') return hostOf(line, steps);
  const rank = line?.kind === 'rank' ? (steps.ranks[line.row] ?? -1) : -1;
  return cells.groupOf?.get(rank) ?? null;
}

/** Lines between nodes or groups, if the rows are high enough. */
function partLines({ context, tokens }: Frame, layout: Layout, content: HeatContent): void {
  const { view, cells } = content;
  if (layout.linePx < 3) return;
  context.fillStyle = tokens.surface;
  for (let at = Math.max(1, Math.floor(view.start)); at < view.end; at += 1) {
    if (partOf(content, cells.lines[at - 1]) === partOf(content, cells.lines[at])) continue;
    const y = HEAD_PX + (at - view.start) * layout.linePx - 0.5;
    context.fillRect(GUTTER_PX, y, layout.plotWidthPx, 1);
  }
}

/** Returns a writer of line labels that skips labels that would overlap. */
function labelWriter(frame: Frame, layout: Layout, { view, cells, steps }: HeatContent) {
  const { context } = frame;
  const fitter = fitterOf(context, context.font);
  const taken: number[] = [];
  context.textAlign = 'right';
  context.textBaseline = 'middle';
  return (at: number, colour: string, mark = ''): void => {
    const line = cells.lines[at];
    const y = HEAD_PX + (at + 0.5 - view.start) * layout.linePx;
    const isIn = y >= HEAD_PX && y <= HEAD_PX + layout.plotHeightPx;
    if (!line || !isIn || taken.some((other) => Math.abs(other - y) < LABEL_PX - 0.5)) return;
    taken.push(y);
    context.fillStyle = colour;
    const text = fitter.fit(`${mark}${nameOfLine(line, steps)}`, GUTTER_PX - 12);
    context.fillText(text, GUTTER_PX - 7, y);
  };
}

/** Labels late ranks first, then missing ones, then every n-th. */
function lineLabels(frame: Frame, layout: Layout, content: HeatContent): void {
  const { tokens } = frame;
  const { view, cells, late } = content;
  const write = labelWriter(frame, layout, content);
  cells.lines.forEach((line, at) => {
    if (line.kind === 'rank' && late.has(line.row)) write(at, tokens.bad, '▸ ');
  });
  cells.lines.forEach((line, at) => {
    if (line.kind === 'missing') write(at, tokens.warn);
  });
  const every = everyNth(layout.linePx, LABEL_PX);
  for (let at = Math.ceil(view.start); at < view.end; at += 1) {
    if (roundNumber(content, at) % every === 0) write(at, tokens.muted);
  }
}

/** The number that decides whether a line is labelled: its rank if lines are in that order. */
function roundNumber({ cells, steps }: HeatContent, at: number): number {
  const line = cells.lines[at];
  const rank = line?.kind === 'rank' ? (steps.ranks[line.row] ?? null) : null;
  return cells.order === 'rank' && rank !== null ? rank : at;
}

function columnLabels({ context, tokens }: Frame, layout: Layout, { steps }: HeatContent): void {
  context.fillStyle = tokens.muted;
  context.textBaseline = 'middle';
  context.textAlign = 'right';
  context.fillText('step', GUTTER_PX - 7, HEAD_PX / 2 + 1);
  context.textAlign = 'center';
  const every = everyNth(layout.columnPx, 38);
  for (let at = 0; at < steps.steps.length; at += every) {
    const x = GUTTER_PX + (at + 0.5) * layout.columnPx;
    context.fillText(String(steps.steps[at]), Math.max(x, GUTTER_PX + 7), HEAD_PX / 2 + 1);
  }
}

/** Outlines of the selected rank and step, and of the cells under pointer and cursor. */
function choices(frame: Frame, layout: Layout, content: HeatContent): void {
  const { context, tokens } = frame;
  const { view, cells, selectedRow, selectedColumn } = content;
  const columnPx = Math.max(LEAST_OUTLINE_PX, layout.columnPx);
  const linePx = Math.max(LEAST_OUTLINE_PX, layout.linePx);
  const outline = (cell: Cell, [width, height]: readonly [number, number], colour: string) => {
    const x = GUTTER_PX + cell.column * layout.columnPx;
    const y = HEAD_PX + (cell.line - view.start) * layout.linePx;
    context.lineWidth = 3.5;
    context.strokeStyle = tokens.surface;
    context.strokeRect(x, y, width, height);
    context.lineWidth = 1.5;
    context.strokeStyle = colour;
    context.strokeRect(x, y, width, height);
  };
  context.save();
  context.beginPath();
  context.rect(GUTTER_PX - 1, HEAD_PX - 2, layout.plotWidthPx + 3, layout.plotHeightPx + 4);
  context.clip();
  const line = cells.lines.findIndex((line) => line.kind === 'rank' && line.row === selectedRow);
  // Around a thin line, to leave its cells visible.
  const padPx = layout.linePx < THIN_PX ? LEAST_LATE_PX : 0;
  const padded = line + 0.5 - (linePx / 2 + padPx) / layout.linePx;
  const heightPx = linePx + 2 * padPx;
  if (line >= 0)
    outline({ line: padded, column: 0 }, [layout.plotWidthPx, heightPx], tokens.accent);
  if (selectedColumn !== null && selectedColumn >= 0) {
    const top = { line: view.start, column: selectedColumn };
    outline(top, [columnPx, layout.plotHeightPx], tokens.accent);
  }
  for (const cell of content.outlined) if (cell) outline(cell, [columnPx, linePx], tokens.text);
  context.restore();
}
