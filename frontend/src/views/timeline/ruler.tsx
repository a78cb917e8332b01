/** The time axis above the tracks: marks, the selected time, the pointer. Dragging selects a time. */
import { type PointerEvent, type ReactNode, useRef, useState } from 'react';
import type { Frame } from '../../canvas/surface';
import { ticksOf } from '../../canvas/ticks';
import type { Range } from '../../canvas/viewport';
import { duration, instant, tick } from '../../core/format';
import { markName, type Overlay } from './overlay';
import type { Viewer } from './viewer';
import { useViewerSurface } from './viewer_surface';

interface Props {
  readonly viewer: Viewer;
  readonly overlay: Overlay;
  readonly onTime: (time: Range | null) => void;
}

const FAR_PX = 4;
const MICROSECOND = 1e3;

function drawTicks(frame: Frame, viewer: Viewer): void {
  const { context, tokens, widthPx, heightPx } = frame;
  const { marks, anchor, step } = ticksOf(viewer.view, widthPx);
  context.textBaseline = 'middle';
  context.textAlign = 'left';
  context.font = `600 11px ${tokens.sans}`;
  context.fillStyle = tokens.text;
  const anchorPx = anchor ? context.measureText(anchor.label).width + 14 : Number.NEGATIVE_INFINITY;
  if (anchor) context.fillText(anchor.label, 4, heightPx / 2 - 2);
  context.font = `11px ${tokens.sans}`;
  const minorPx = step / 5 / viewer.nsPerPx;
  for (const { value, label } of marks) {
    const x = viewer.xOf(value);
    context.fillStyle = tokens.lineStrong;
    context.fillRect(Math.round(x), heightPx - 12, 1, 12);
    for (let minor = 1; minor < 5; minor += 1) {
      context.fillRect(Math.round(x + minor * minorPx), heightPx - 4, 1, 4);
    }
    context.fillStyle = tokens.muted;
    const isWhole = x + 4 + context.measureText(label).width <= widthPx; // "10" of "100 ms" misleads
    if (x + 4 > anchorPx && isWhole) context.fillText(label, x + 4, heightPx / 2 - 2);
  }
}

function drawBand(frame: Frame, viewer: Viewer, time: Range): void {
  const { context, tokens, widthPx, heightPx } = frame;
  const from = Math.max(-4, viewer.xOf(time.start));
  const to = Math.min(widthPx + 4, viewer.xOf(time.end));
  if (to < 0 || from > widthPx) return;
  context.fillStyle = tokens.accent;
  context.globalAlpha = 0.2;
  context.fillRect(from, 0, to - from, heightPx);
  context.globalAlpha = 1;
  context.fillRect(from, heightPx - 3, to - from, 3);
  const text = duration(time.end - time.start);
  context.font = `600 11px ${tokens.sans}`;
  const room = context.measureText(text).width + 12;
  if (to - from < room) return;
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  const middle = (Math.max(0, from) + Math.min(widthPx, to)) / 2;
  context.fillRect(middle - room / 2, 4, room, 17);
  context.fillStyle = tokens.surface;
  context.fillText(text, middle, 13);
}

function drawMarks(frame: Frame, viewer: Viewer, marks: readonly number[]): void {
  const { context, tokens, widthPx, heightPx } = frame;
  context.font = `700 10px ${tokens.sans}`;
  context.textAlign = 'left';
  context.textBaseline = 'middle';
  marks.forEach((mark, at) => {
    const x = Math.round(viewer.xOf(mark));
    if (x < -20 || x > widthPx) return;
    const name = markName(at);
    context.fillStyle = tokens.bad;
    context.fillRect(x, 0, 1, heightPx);
    context.fillRect(x, 0, context.measureText(name).width + 8, 13);
    context.fillStyle = tokens.surface;
    context.fillText(name, x + 4, 7);
  });
}

function drawPointer(frame: Frame, viewer: Viewer): void {
  if (!viewer.pointer) return;
  const { context, tokens, widthPx, heightPx } = frame;
  const { x } = viewer.pointer;
  const step = 10 ** Math.floor(Math.log10(Math.max(1, viewer.nsPerPx)));
  const time = Math.round(viewer.timeAt(x) / step) * step;
  const base = Math.floor(time / MICROSECOND) * MICROSECOND;
  const text = step >= MICROSECOND ? tick(time) : `${instant(base)} + ${tick(time - base)}`;
  context.font = `600 11px ${tokens.sans}`;
  const room = context.measureText(text).width + 12;
  const left = Math.max(0, Math.min(widthPx - room, x - room / 2));
  context.fillStyle = tokens.text;
  context.beginPath();
  context.roundRect(left, heightPx - 22, room, 18, 4);
  context.fill();
  context.fillStyle = tokens.surface;
  context.textAlign = 'left';
  context.textBaseline = 'middle';
  context.fillText(text, left + 6, heightPx - 12.5);
}

export function Ruler({ viewer, overlay, onTime }: Props): ReactNode {
  const from = useRef<number | null>(null);
  const [draft, setDraft] = useState<Range | null>(null);
  const canvas = useViewerSurface(viewer, (frame) => {
    frame.context.fillStyle = frame.tokens.surface;
    frame.context.fillRect(0, 0, frame.widthPx, frame.heightPx);
    drawTicks(frame, viewer);
    const time = draft ?? overlay.time;
    if (time) drawBand(frame, viewer, time);
    drawMarks(frame, viewer, overlay.marks);
    drawPointer(frame, viewer);
    return false;
  });
  const xOf = (event: PointerEvent<HTMLCanvasElement>): number =>
    event.clientX - event.currentTarget.getBoundingClientRect().left;
  const rangeTo = (x: number): Range | null => {
    if (from.current === null || Math.abs(x - from.current) < FAR_PX) return null;
    const start = viewer.timeAt(Math.min(from.current, x));
    const end = viewer.timeAt(Math.max(from.current, x));
    return {
      start: Math.max(viewer.bounds.start, Math.floor(start)),
      end: Math.min(viewer.bounds.end, Math.ceil(end)),
    };
  };
  const end = (): void => {
    from.current = null;
    setDraft(null);
  };
  return (
    <canvas
      ref={canvas}
      className="timeline-ruler"
      role="img"
      aria-label="Time axis; dragging over it filters all views to a time range"
      onPointerDown={(event) => {
        if (event.button !== 0) return;
        event.currentTarget.setPointerCapture(event.pointerId);
        from.current = xOf(event);
      }}
      onPointerMove={(event) => {
        viewer.point({ x: xOf(event), y: -1 });
        if (from.current !== null) setDraft(rangeTo(xOf(event)));
      }}
      onPointerUp={(event) => {
        const range = rangeTo(xOf(event));
        if (range) onTime(range);
        end();
      }}
      onPointerCancel={end}
      onPointerLeave={() => viewer.point(null)}
      onDoubleClick={() => onTime(null)}
    />
  );
}
