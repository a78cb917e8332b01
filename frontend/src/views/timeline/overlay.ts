/** Everything drawn over the slices: the selection and its links, ranges, marks, a finding. */
import type { Frame } from '../../canvas/surface';
import { fitterOf } from '../../canvas/text';
import type { Range } from '../../canvas/viewport';
import { duration } from '../../core/format';
import { rowTopPx } from './layout';
import type { Picked } from './pick';
import type { Area } from './settings';
import { type ShownLink, stubsOf } from './stubs';
import type { Viewer } from './viewer';
import type { SlicePosition, StepMark } from './wire';

/** Times and events of a finding. */
export interface ShownFinding {
  readonly spans: readonly Range[];
  readonly events: ReadonlySet<number>;
}

export interface Overlay {
  readonly steps: readonly StepMark[];
  readonly selected: SlicePosition | null;
  /** The selected idle time, which no event stands for. */
  readonly picked: Picked | null;
  readonly links: readonly ShownLink[];
  /** The time that all views are filtered to. */
  readonly time: Range | null;
  readonly area: Area | null;
  readonly marks: readonly number[];
  readonly finding: ShownFinding | null;
  readonly highlightedNames: Uint8Array | null;
}

/** The name of a mark: `A`, `B`, … `Z`, `AA`. */
export function markName(at: number): string {
  const letter = String.fromCharCode(65 + (at % 26));
  return at < 26 ? letter : `${markName(Math.floor(at / 26) - 1)}${letter}`;
}

export interface Box {
  readonly x: number;
  readonly y: number;
  readonly widthPx: number;
  readonly heightPx: number;
}

interface SliceBox extends Box {
  /** Whether any of it is visible. */
  readonly isInSight: boolean;
}

/** The box of a slice on the screen; null if its track is not shown. */
export function boxOf(
  viewer: Viewer,
  position: Pick<SlicePosition, 'track' | 'row'>,
  time: Range,
): SliceBox | null {
  const { pinned, lanes, pinnedPx } = viewer.layout;
  const above = pinned.find((lane) => lane.track.id === position.track);
  const lane = above ?? lanes.find((lane) => lane.track.id === position.track);
  if (!lane) return null;
  const top = above ? lane.topPx : pinnedPx + lane.topPx - viewer.scrollPx;
  const row = Math.min(position.row, Math.max(0, lane.rows - 1));
  const x = viewer.xOf(time.start);
  const y = top + rowTopPx(lane, row);
  const widthPx = Math.max(1, viewer.xOf(time.end) - x);
  const heightPx = Math.max(2, lane.rowPx - 1);
  const isInTime = x < viewer.widthPx && x + widthPx > 0;
  return {
    x,
    // Slices scroll out of sight below the pinned tracks.
    y: above ? y : Math.max(pinnedPx - 4, y),
    widthPx,
    heightPx,
    isInSight: isInTime && y + heightPx > (above ? 0 : pinnedPx) && y < viewer.heightPx,
  };
}

export const rangeOf = ({ start_ns, duration_ns }: SlicePosition): Range => ({
  start: start_ns,
  end: start_ns + duration_ns,
});

/** Clips a box to the screen: canvases draw wrongly far outside. */
function cut({ x, y, widthPx, heightPx }: Box, screenPx: number): Box {
  const from = Math.max(-10, x);
  const to = Math.min(screenPx + 10, x + widthPx);
  return { x: from, y, widthPx: Math.max(1, to - from), heightPx };
}

function outline({ context, widthPx, tokens }: Frame, box: Box, colour: string): void {
  if (box.x > widthPx || box.x + box.widthPx < 0) return;
  const { x, y, widthPx: width, heightPx } = cut(box, widthPx);
  context.lineWidth = 2;
  context.strokeStyle = tokens.surface;
  context.strokeRect(x - 2, y - 2, width + 4, heightPx + 4);
  context.strokeStyle = colour;
  context.strokeRect(x - 1, y - 1, width + 2, heightPx + 2);
}

function arrow({ context, tokens }: Frame, from: Box, to: Box): void {
  const x0 = from.x + Math.min(from.widthPx, 6);
  const y0 = from.y + from.heightPx / 2;
  const x1 = to.x;
  const y1 = to.y + to.heightPx / 2;
  const bend = Math.max(24, Math.min(120, Math.abs(x1 - x0) / 2));
  const draw = (lineWidth: number, colour: string): void => {
    context.lineWidth = lineWidth;
    context.strokeStyle = colour;
    context.fillStyle = colour;
    context.beginPath();
    context.moveTo(x0, y0);
    context.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1, y1);
    context.stroke();
    context.beginPath();
    context.moveTo(x1 + 1, y1);
    context.lineTo(x1 - 7, y1 - 4);
    context.lineTo(x1 - 7, y1 + 4);
    context.closePath();
    context.fill();
  };
  draw(3.5, tokens.surface);
  draw(1.5, tokens.text);
}

/** Draws labels for the linked slices out of sight, and keeps them for the pointer. */
function drawStubs(
  frame: Frame,
  viewer: Viewer,
  anchor: Box,
  { links, fromNs }: { readonly links: readonly ShownLink[]; readonly fromNs: number },
): void {
  const { context, tokens } = frame;
  const font = `600 11px ${tokens.sans}`;
  const fitter = fitterOf(context, font);
  viewer.stubs = stubsOf(links, { anchor, fromNs, fitter, screen: frame });
  const hovered = viewer.stubAt();
  context.font = font;
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  for (const stub of viewer.stubs) {
    const { x, y, widthPx, heightPx } = stub;
    context.fillStyle = stub === hovered ? tokens.accent : tokens.text;
    context.beginPath();
    context.roundRect(x, y, widthPx, heightPx, 4);
    context.fill();
    context.fillStyle = tokens.surface;
    context.fillText(stub.text, x + widthPx / 2, y + heightPx / 2 + 0.5);
  }
}

/** The visible part of a slice, so that an arrow begins and ends where it can be seen. */
const visiblePart = (box: Box): Box => {
  const x = Math.max(0, box.x);
  return { ...box, x, widthPx: box.x + box.widthPx - x };
};

/** Arrows between the selected slice and linked ones in sight, in order of time; labels for the others. */
function drawLinks(frame: Frame, viewer: Viewer, { selected, links }: Overlay): void {
  viewer.stubs = [];
  const box = selected && boxOf(viewer, selected, rangeOf(selected));
  if (!(selected && box?.isInSight)) return;
  const away: ShownLink[] = [];
  for (const link of links) {
    const other = boxOf(viewer, link, rangeOf(link));
    if (!other?.isInSight) {
      away.push(link);
      continue;
    }
    const isLater = link.start_ns >= selected.start_ns;
    const ends = [visiblePart(box), visiblePart(other)] as const;
    arrow(frame, isLater ? ends[0] : ends[1], isLater ? ends[1] : ends[0]);
    outline(frame, other, frame.tokens.muted);
  }
  drawStubs(frame, viewer, box, { links: away, fromNs: selected.start_ns });
}

function shade({ context, heightPx }: Frame, from: number, to: number): void {
  if (to > from) context.fillRect(from, 0, to - from, heightPx);
}

/** Greys out everything outside the selected time. */
function drawTime(frame: Frame, viewer: Viewer, time: Range): void {
  const { context, tokens, widthPx, heightPx } = frame;
  const [from, to] = [viewer.xOf(time.start), viewer.xOf(time.end)];
  context.globalAlpha = 0.62;
  context.fillStyle = tokens.background;
  shade(frame, 0, Math.min(widthPx, from));
  shade(frame, Math.max(0, to), widthPx);
  context.globalAlpha = 1;
  context.fillStyle = tokens.accent;
  for (const x of [from, to]) {
    if (x >= -1 && x <= widthPx + 1) context.fillRect(Math.round(x) - 0.5, 0, 1, heightPx);
  }
}

function drawFinding(frame: Frame, viewer: Viewer, spans: readonly Range[]): void {
  const { context, tokens, widthPx, heightPx } = frame;
  context.fillStyle = tokens.warn;
  for (const span of spans) {
    const from = viewer.xOf(span.start);
    const to = Math.max(from + 1, viewer.xOf(span.end));
    if (to < 0 || from > widthPx) continue;
    context.globalAlpha = 0.14;
    shade(frame, Math.max(0, from), Math.min(widthPx, to));
    context.globalAlpha = 0.9;
    for (const x of [from, to]) {
      if (x >= 0 && x <= widthPx) context.fillRect(x, 0, 1, heightPx);
    }
  }
  context.globalAlpha = 1;
}

function drawArea(frame: Frame, viewer: Viewer, overlay: Overlay): void {
  const area = viewer.draft ?? overlay.area;
  if (!area) return;
  const { context, tokens } = frame;
  const lanes = viewer
    .visibleLanes()
    .filter(({ lane }) => area.tracks.length === 0 || area.tracks.includes(lane.track.id));
  const [from, to] = [viewer.xOf(area.start), viewer.xOf(area.end)];
  const x = Math.max(-10, from);
  const width = Math.min(frame.widthPx + 10, to) - x;
  const [first] = lanes;
  if (!first || width <= 0) return;
  context.fillStyle = tokens.accent;
  for (const { lane, y } of lanes) {
    context.globalAlpha = 0.13;
    context.fillRect(x, y, width, lane.heightPx);
    context.globalAlpha = 0.8;
    context.fillRect(x, y, 1, lane.heightPx);
    context.fillRect(x + width - 1, y, 1, lane.heightPx);
  }
  context.globalAlpha = 1;
  const text = duration(area.end - area.start);
  context.font = `600 11px ${tokens.sans}`;
  context.textAlign = 'center';
  context.textBaseline = 'top';
  const middle = Math.max(30, Math.min(frame.widthPx - 30, (from + to) / 2));
  const room = context.measureText(text).width + 10;
  const y = Math.max(2, first.y + 2);
  context.fillRect(middle - room / 2, y, room, 17);
  context.fillStyle = tokens.surface;
  context.fillText(text, middle, y + 3);
}

function drawMarks(frame: Frame, viewer: Viewer, marks: readonly number[]): void {
  const { context, tokens, widthPx, heightPx } = frame;
  context.fillStyle = tokens.bad;
  context.font = `600 10px ${tokens.sans}`;
  context.textAlign = 'left';
  context.textBaseline = 'bottom';
  marks.forEach((mark, at) => {
    const x = Math.round(viewer.xOf(mark));
    if (x < 0 || x > widthPx) return;
    context.fillRect(x, 0, 1, heightPx);
    context.fillText(markName(at), x + 3, heightPx - 2);
  });
}

function drawPointer(frame: Frame, viewer: Viewer): void {
  const { pointer, hover } = viewer;
  if (!pointer) return;
  const { context, tokens, heightPx } = frame;
  context.fillStyle = tokens.lineStrong;
  context.globalAlpha = 0.7;
  context.fillRect(Math.round(pointer.x), 0, 1, heightPx);
  context.globalAlpha = 1;
  const box = hover && boxOf(viewer, hover, { start: hover.startNs, end: hover.endNs });
  if (box) outline(frame, box, tokens.muted);
}

export function drawOverlay(frame: Frame, viewer: Viewer, overlay: Overlay): void {
  const { selected, picked } = overlay;
  if (overlay.finding) drawFinding(frame, viewer, overlay.finding.spans);
  if (overlay.time) drawTime(frame, viewer, overlay.time);
  drawArea(frame, viewer, overlay);
  drawMarks(frame, viewer, overlay.marks);
  drawPointer(frame, viewer);
  drawLinks(frame, viewer, overlay);
  const box =
    (selected && boxOf(viewer, selected, rangeOf(selected))) ??
    (picked && boxOf(viewer, picked, { start: picked.startNs, end: picked.endNs }));
  if (box?.isInSight) outline(frame, box, frame.tokens.text);
}
