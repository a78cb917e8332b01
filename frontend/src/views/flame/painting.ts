/** Draws the visible part of a flame graph. */
import type { Frame } from '../../canvas/surface';
import { fitterOf, type TextFitter } from '../../canvas/text';
import { lengthOf, type Range } from '../../canvas/viewport';
import { changeFill, type Fill, kindFill } from './colours';
import { frameName, mergedLabel } from './labels';
import {
  changeOf,
  firstBehind,
  isSmaller,
  kindOf,
  type Layout,
  levelOf,
  type Matches,
  NONE,
  type Node,
  nameOf,
} from './layout';

export const ROW_PX = 20;
const GAP_PX = 1;
const TEXT_LEAST_PX = 26;
const PADDING_PX = 5;
const SMALLEST_PX = 0.4;
const FADED = 0.28;
const OUTSIDE = 0.55;
const FONT_PX = 12;

export interface Picture {
  readonly layout: Layout;
  /** The visible range, in weight. */
  readonly view: Range;
  /** Scroll position of the rows. */
  readonly topPx: number;
  /** The frame that fills the picture; frames above it are faded. */
  readonly root: Node;
  readonly active: Node;
  readonly hovered: Node;
  /** The name whose frames are highlighted. */
  readonly marked: string | null;
  readonly matches: Matches | null;
}

interface Pen {
  readonly frame: Frame;
  readonly fitter: TextFitter;
  readonly picture: Picture;
}

/** The visible rows. */
export function rowsIn(picture: Picture, heightPx: number): readonly [first: number, end: number] {
  const depths = picture.layout.levels.length - 1;
  const first = Math.max(0, Math.floor(picture.topPx / ROW_PX));
  return [first, Math.min(depths, Math.ceil((picture.topPx + heightPx) / ROW_PX))];
}

export function paint(frame: Frame, picture: Picture): void {
  const { context, tokens } = frame;
  const font = `${FONT_PX}px ${tokens.sans}`;
  const pen = { frame, picture, fitter: fitterOf(context, font) };
  context.font = font;
  context.textBaseline = 'middle';
  const [first, end] = rowsIn(picture, frame.heightPx);
  for (let depth = first; depth < end; depth += 1) paintRow(pen, depth);
  outlined(pen, picture.hovered, 1.5);
  outlined(pen, picture.active, 2.5);
}

function paintRow(pen: Pen, depth: number): void {
  const { layout, view } = pen.picture;
  const [, end] = levelOf(layout, depth);
  let drawnToPx = -1;
  for (let node = firstBehind(layout, depth, view.start); node < end; node += 1) {
    if ((layout.start[node] ?? 0) >= view.end) break;
    const box = boxOf(pen.frame.widthPx, pen.picture, node);
    // Of frames narrower than a pixel, one per pixel is drawn.
    if (box.widthPx < SMALLEST_PX && box.x + box.widthPx <= drawnToPx) continue;
    paintNode(pen, node, box);
    drawnToPx = Math.max(drawnToPx, box.x + Math.max(1, box.widthPx));
  }
}

export interface Box {
  readonly x: number;
  readonly y: number;
  readonly widthPx: number;
}

/** The box of a node on the canvas, clipped to it. */
export function boxOf(canvasPx: number, { layout, view, topPx }: Picture, node: Node): Box {
  const per = canvasPx / lengthOf(view);
  const x = Math.max(-1, ((layout.start[node] ?? 0) - view.start) * per);
  const right = Math.min(canvasPx + 1, ((layout.end[node] ?? 0) - view.start) * per);
  return { x, y: (layout.depth[node] ?? 0) * ROW_PX - topPx, widthPx: Math.max(0, right - x) };
}

function fillFor({ frame, picture }: Pen, node: Node): Fill {
  const { layout } = picture;
  if (layout.isCompared) return changeFill(changeOf(layout, node), frame.theme);
  if (isSmaller(layout, node)) return { fill: frame.tokens.sunken, ink: frame.tokens.muted };
  return kindFill(kindOf(layout, node), nameOf(layout, node), frame.theme);
}

function alphaOf({ layout, matches, marked, root }: Picture, node: Node): number {
  if (marked !== null) return nameOf(layout, node) === marked ? 1 : FADED;
  if (matches) return matches.isMatch[node] === 1 ? 1 : FADED;
  const isOutside = root !== NONE && (layout.depth[node] ?? 0) < (layout.depth[root] ?? 0);
  return isOutside ? OUTSIDE : 1;
}

function paintNode(pen: Pen, node: Node, { x, y, widthPx }: Box): void {
  const { context, tokens } = pen.frame;
  const { fill, ink } = fillFor(pen, node);
  const alpha = alphaOf(pen.picture, node);
  const shownPx = Math.max(0.6, widthPx - (widthPx > 3 ? GAP_PX : 0));
  context.globalAlpha = alpha;
  context.fillStyle = fill;
  context.fillRect(x, y, shownPx, ROW_PX - GAP_PX);
  if (isSmaller(pen.picture.layout, node)) hatch(pen, { x, y, widthPx: shownPx });
  context.globalAlpha = 1;
  if (shownPx < TEXT_LEAST_PX) return;
  // Faded frames have text in the colour of the page.
  context.fillStyle = alpha < 1 ? tokens.text : ink;
  label(pen, node, { x, y, widthPx: shownPx });
}

function label({ frame, fitter, picture }: Pen, node: Node, { x, y, widthPx }: Box): void {
  const { layout } = picture;
  const left = Math.max(0, x) + PADDING_PX;
  const full = isSmaller(layout, node)
    ? mergedLabel(layout, node)
    : frameName(nameOf(layout, node));
  const text = fitter.fit(full, x + widthPx - left - PADDING_PX);
  if (text) frame.context.fillText(text, left, y + (ROW_PX - GAP_PX) / 2 + 0.5);
}

const HATCH_PX = 6;

/** Hatching of merged frames. */
function hatch({ frame: { context, tokens } }: Pen, { x, y, widthPx }: Box): void {
  context.save();
  context.beginPath();
  context.rect(x, y, widthPx, ROW_PX - GAP_PX);
  context.clip();
  context.beginPath();
  context.strokeStyle = tokens.line;
  context.lineWidth = 1.5;
  for (let at = x - ROW_PX; at < x + widthPx; at += HATCH_PX) {
    context.moveTo(at, y + ROW_PX);
    context.lineTo(at + ROW_PX, y);
  }
  context.stroke();
  context.restore();
}

function outlined({ frame, picture }: Pen, node: Node, lineWidth: number): void {
  if (node === NONE) return;
  const { x, y, widthPx } = boxOf(frame.widthPx, picture, node);
  if (x > frame.widthPx || x + widthPx < 0) return;
  const inset = lineWidth / 2;
  frame.context.strokeStyle = frame.tokens.text;
  frame.context.lineWidth = lineWidth;
  frame.context.strokeRect(
    x + inset,
    y + inset,
    Math.max(1, widthPx - lineWidth - GAP_PX),
    ROW_PX - GAP_PX - lineWidth,
  );
}
