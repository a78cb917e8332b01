/** The whole trace as a strip: steps, device activity, search results, and the visible range. */
import { type PointerEvent, type ReactNode, useMemo, useRef } from 'react';
import { packed, shade, type Theme } from '../../canvas/colours';
import { PixelRows, StripCanvas } from '../../canvas/strips';
import type { Frame } from '../../canvas/surface';
import { lengthOf, panned, perPx, pxOf, type Range, valueAt } from '../../canvas/viewport';
import { thinned } from './palette';
import type { Segment } from './tile_store';
import { PX_PARTS, tileNs, tilesOf } from './tiles';
import { LEAST_NS, type Viewer } from './viewer';
import { useViewerSurface } from './viewer_surface';
import type { StepMark, Timeline, Track } from './wire';

const HANDLE_PX = 7;
const STEPS_PX = 7;
const MOST_ROWS = 8;
const MOST_THREADS = 3;

/** Tracks that share one line of the strip. */
export interface HeatRow {
  readonly tracks: readonly number[];
  readonly category: string;
}

/** One line per device; without a device one per thread, the busiest ones. */
export function heatRows({ tracks }: Pick<Timeline, 'tracks'>): HeatRow[] {
  const streams = tracks.filter((track) => track.kind === 'stream');
  if (streams.length === 0) {
    return tracks
      .filter((track) => track.kind === 'thread')
      .sort((a, b) => (b.event_count ?? 0) - (a.event_count ?? 0))
      .slice(0, MOST_THREADS)
      .map((track) => ({ tracks: [track.id], category: 'cpu' }));
  }
  const byDevice = new Map<number | null, Track[]>();
  for (const stream of streams) {
    byDevice.set(stream.parent, [...(byDevice.get(stream.parent) ?? []), stream]);
  }
  return [...byDevice.values()].slice(0, MOST_ROWS).map((deviceStreams) => ({
    tracks: deviceStreams.map((track) => track.id),
    category: 'kernel',
  }));
}

/** Adds the busy fraction of each pixel, from the first row of a track. */
export function addSlices(
  sums: Float32Array,
  { tile }: Pick<Segment, 'tile'>,
  track: number,
  pxPerNs: number,
): void {
  const span = tile.rows.get(track)?.[0];
  if (!span) return;
  const { x, width, busy } = tile.slices;
  const partNs = 2 ** tile.level / PX_PARTS;
  const startNs = tile.tile * tileNs(tile.level);
  for (let at = span.from; at < span.to; at += 1) {
    const from = (startNs + (x[at] ?? 0) * partNs) * pxPerNs;
    const to = from + (width[at] ?? 0) * partNs * pxPerNs;
    const share = (busy[at] ?? 255) / 255;
    for (let px = Math.floor(from); px < Math.min(to, sums.length); px += 1) {
      const filled = Math.min(px + 1, to) - Math.max(px, from);
      sums[px] = Math.min(1, (sums[px] ?? 0) + filled * share);
    }
  }
}

/** The busy fraction of each pixel over the whole trace: that of the busiest of some tracks. */
export class Coverage {
  /** By pixel, 0 to 1. */
  shares = new Float32Array(0);
  private isComplete = false;

  constructor(
    private readonly viewer: Viewer,
    private readonly tracks: readonly number[],
  ) {}

  /** Recomputes the fractions after a change; returns whether it did. */
  update(widthPx: number): boolean {
    const width = Math.round(widthPx);
    if (this.isComplete && this.shares.length === width) return false;
    this.isComplete = true;
    this.shares = new Float32Array(width);
    for (const track of this.tracks) {
      // Streams run concurrently: the device is at least as busy as the busiest of them.
      this.of(track, width).forEach((share, px) => {
        this.shares[px] = Math.max(this.shares[px] ?? 0, share);
      });
    }
    return true;
  }

  private of(track: number, width: number): Float32Array {
    const { bounds, store } = this.viewer;
    const sums = new Float32Array(width);
    const level = this.viewer.levelFor(perPx(bounds, width));
    const { first, last } = tilesOf(level, bounds);
    for (let tile = first; tile <= last; tile += 1) {
      const [segment, ...others] = store.segments(track, level, tile);
      this.isComplete &&= segment?.isExact === true && others.length === 0;
      if (segment?.isExact) addSlices(sums, segment, track, width / lengthOf(bounds));
    }
    return sums;
  }
}

class Heat {
  private readonly coverage: readonly Coverage[];
  private readonly pixels = new PixelRows();
  private readonly strips = new StripCanvas();
  private key = '';

  constructor(
    viewer: Viewer,
    private readonly rows: readonly HeatRow[],
  ) {
    this.coverage = rows.map((row) => new Coverage(viewer, row.tracks));
  }

  draw({ context, theme, ratio, widthPx, heightPx }: Frame): void {
    const isChanged = this.coverage.map((row) => row.update(widthPx)).some(Boolean);
    const key = `${theme} ${ratio}`;
    if (isChanged || this.key !== key) this.fill(theme, ratio);
    this.key = key;
    const top = STEPS_PX + 2;
    const rowPx = (heightPx - top - 3) / Math.max(1, this.rows.length);
    context.imageSmoothingEnabled = false;
    this.rows.forEach((_, line) => {
      const y = top + line * rowPx;
      this.strips.draw(context, line, { x: 0, y, widthPx, heightPx: Math.max(1, rowPx - 1) });
    });
  }

  private fill(theme: Theme, ratio: number): void {
    const width = this.coverage[0]?.shares.length ?? 0;
    this.pixels.begin(Math.max(1, Math.round(width * ratio)), this.rows.length);
    this.rows.forEach(({ category }, line) => {
      const colour = packed(shade(category, 0, theme));
      this.coverage[line]?.shares.forEach((share, px) => {
        const from = Math.floor(px * ratio);
        const to = Math.max(from + 1, Math.floor((px + 1) * ratio));
        if (share > 0) this.pixels.run(line, from, to, thinned(colour, share * 255));
      });
    });
    this.strips.put(this.pixels);
  }
}

function drawSteps(
  { context, tokens, widthPx }: Frame,
  bounds: Range,
  steps: readonly StepMark[],
): void {
  context.fillStyle = tokens.muted;
  let lastX = Number.NEGATIVE_INFINITY;
  for (const step of steps) {
    const x = Math.round(pxOf(bounds, widthPx, step.start_ns));
    if (x - lastX < 3) continue;
    context.fillRect(x, 0, 1, STEPS_PX);
    lastX = x;
  }
}

function drawDensity(
  { context, tokens, widthPx, heightPx }: Frame,
  density: readonly number[],
): void {
  const most = density.reduce((a, b) => Math.max(a, b), 0);
  const width = widthPx / Math.max(1, density.length);
  context.fillStyle = tokens.bad;
  density.forEach((hits, at) => {
    if (hits === 0) return;
    const height = 3 + 9 * (hits / most);
    context.fillRect(at * width, heightPx - height, Math.max(1, width), height);
  });
}

function drawWindow(frame: Frame, viewer: Viewer): void {
  const { context, tokens, widthPx, heightPx } = frame;
  const from = pxOf(viewer.bounds, widthPx, viewer.view.start);
  const to = Math.max(from + 2, pxOf(viewer.bounds, widthPx, viewer.view.end));
  context.fillStyle = tokens.background;
  context.globalAlpha = 0.66;
  context.fillRect(0, 0, from, heightPx);
  context.fillRect(to, 0, widthPx - to, heightPx);
  context.globalAlpha = 1;
  context.strokeStyle = tokens.accent;
  context.lineWidth = 1;
  context.strokeRect(from + 0.5, 0.5, Math.max(1, to - from - 1), heightPx - 1);
  context.fillStyle = tokens.accent;
  for (const x of [from, to - 4]) {
    context.beginPath();
    context.roundRect(x, heightPx / 2 - 9, 4, 18, 2);
    context.fill();
  }
}

type Grip = 'start' | 'end' | 'window' | 'new';

interface Drag {
  readonly grip: Grip;
  readonly from: number;
  readonly view: Range;
}

/** The handle under a position. */
export function gripAt(viewer: Pick<Viewer, 'view' | 'bounds'>, widthPx: number, x: number): Grip {
  const from = pxOf(viewer.bounds, widthPx, viewer.view.start);
  const to = pxOf(viewer.bounds, widthPx, viewer.view.end);
  const reach = Math.min(HANDLE_PX, Math.max(3, (to - from) / 4));
  if (Math.abs(x - from) <= reach) return 'start';
  if (Math.abs(x - to) <= reach) return 'end';
  const isWhole = lengthOf(viewer.view) >= lengthOf(viewer.bounds) * 0.999;
  return x > from && x < to && !isWhole ? 'window' : 'new';
}

function dragged(viewer: Viewer, { grip, from, view }: Drag, time: number): Range {
  if (grip === 'window') return panned(view, viewer.bounds, time - from);
  const still = { start: view.end, end: view.start, new: from }[grip];
  const [start, end] = [Math.min(still, time), Math.max(still, time)];
  return { start, end: Math.max(end, start + LEAST_NS) };
}

const CURSORS: Readonly<Record<Grip, string>> = {
  start: 'ew-resize',
  end: 'ew-resize',
  window: 'grab',
  new: 'crosshair',
};

interface Props {
  readonly viewer: Viewer;
  readonly rows: readonly HeatRow[];
  readonly steps: readonly StepMark[];
  /** Number of search results in equal parts of the trace. */
  readonly density: readonly number[] | null;
  /** Times of the shown finding. */
  readonly finding: readonly Range[];
}

function drawFinding(
  { context, tokens, widthPx }: Frame,
  bounds: Range,
  spans: readonly Range[],
): void {
  context.fillStyle = tokens.warn;
  for (const span of spans) {
    const from = pxOf(bounds, widthPx, span.start);
    context.fillRect(from, 0, Math.max(2, pxOf(bounds, widthPx, span.end) - from), 4);
  }
}

export function Minimap({ viewer, rows, steps, density, finding }: Props): ReactNode {
  const heat = useMemo(() => new Heat(viewer, rows), [viewer, rows]);
  const drag = useRef<Drag | null>(null);
  const canvas = useViewerSurface(viewer, (frame) => {
    const { context, widthPx, heightPx, tokens } = frame;
    context.fillStyle = tokens.surface;
    context.fillRect(0, 0, widthPx, heightPx);
    viewer.overviewPx = widthPx;
    drawSteps(frame, viewer.bounds, steps);
    heat.draw(frame);
    if (density) drawDensity(frame, density);
    drawWindow(frame, viewer);
    drawFinding(frame, viewer.bounds, finding);
    return false;
  });
  const xOf = (event: PointerEvent<HTMLCanvasElement>): number =>
    event.clientX - event.currentTarget.getBoundingClientRect().left;
  const timeAt = (event: PointerEvent<HTMLCanvasElement>): number =>
    valueAt(viewer.bounds, event.currentTarget.clientWidth, xOf(event));
  const end = (): void => {
    drag.current = null;
  };
  return (
    <canvas
      ref={canvas}
      className="timeline-minimap"
      role="img"
      aria-label="The whole trace and its visible range"
      onPointerDown={(event) => {
        if (event.button !== 0) return;
        event.currentTarget.setPointerCapture(event.pointerId);
        const grip = gripAt(viewer, event.currentTarget.clientWidth, xOf(event));
        drag.current = { grip, from: timeAt(event), view: viewer.view };
      }}
      onPointerMove={(event) => {
        const widthPx = event.currentTarget.clientWidth;
        const grip = drag.current?.grip ?? gripAt(viewer, widthPx, xOf(event));
        event.currentTarget.style.cursor = CURSORS[grip];
        if (!drag.current) return;
        const time = timeAt(event);
        const isFar = Math.abs(time - drag.current.from) > 3 * perPx(viewer.bounds, widthPx);
        if (grip !== 'new' || isFar) viewer.show(dragged(viewer, drag.current, time));
      }}
      onPointerUp={end}
      onPointerCancel={end}
      onDoubleClick={() => viewer.fitAll()}
    />
  );
}
