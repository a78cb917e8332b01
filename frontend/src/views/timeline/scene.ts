/** Draws the tracks: slices as lines of pixels, their labels, counter curves, and the overlay. */
import { INK } from '../../canvas/colours';
import { PixelRows, StripCanvas } from '../../canvas/strips';
import type { Frame } from '../../canvas/surface';
import { fitterOf } from '../../canvas/text';
import { shortName } from '../../core/names';
import { drawCounter } from './draw_counter';
import { rowTopPx } from './layout';
import { drawOverlay, type Overlay } from './overlay';
import { type Label, type MergedRun, type Painting, paintRow } from './paint_row';
import type { Palette } from './palette';
import type { CounterStore } from './stores';
import type { Viewer, VisibleLane } from './viewer';

const LEAST_LABEL_PX = 30;
const LEAST_STEP_PX = 24;
const LABEL_MARGIN_PX = 4;
const LABELS_FROM_PX = 10;
const FONT_PX = 11;

/** A visible row with its line of pixels. */
interface VisibleRow {
  readonly line: number;
  readonly visible: VisibleLane;
  readonly row: number;
  readonly y: number;
  readonly heightPx: number;
}

function rowsOf(lanes: readonly VisibleLane[], frame: Frame): VisibleRow[] {
  const rows: VisibleRow[] = [];
  for (const visible of lanes) {
    const { lane } = visible;
    for (let row = 0; row < lane.rows; row += 1) {
      const y = visible.y + rowTopPx(lane, row);
      if (y > frame.heightPx || y + lane.rowPx < 0) continue;
      // Rows with labels keep a pixel apart.
      const heightPx = lane.rowPx >= LABELS_FROM_PX ? lane.rowPx - 1 : lane.rowPx;
      rows.push({ line: rows.length, visible, row, y, heightPx });
    }
  }
  return rows;
}

const PYTHON_CALL = /\(\d+\): (.+)$/s;

/** `aten::conv2d` → `conv2d`; `train.py(12): step` → `step`; of a template the words before it. */
export function briefName(short: string): string {
  const called = PYTHON_CALL.exec(short)?.[1];
  if (called !== undefined) return called;
  const [head = short] = short.split(/[<(]/, 1);
  const at = head.lastIndexOf('::');
  const brief = at === -1 ? short : short.slice(at + 2);
  return brief === '' ? short : brief;
}

interface Parts {
  readonly viewer: Viewer;
  readonly palette: Palette;
  readonly counters: CounterStore;
}

export class Scene {
  private readonly pixels = new PixelRows();
  private readonly strips = new StripCanvas();
  private readonly shortNames = new Map<number, string>();
  private hatch: { readonly key: string; readonly pattern: CanvasPattern | null } | null = null;
  private names: readonly string[] = [];

  constructor(private readonly parts: Parts) {}

  named(names: readonly string[]): void {
    this.names = names;
    this.shortNames.clear();
    this.parts.palette.named(names);
  }

  /** Returns whether the view is still moving. */
  paint(frame: Frame, overlay: Overlay): boolean {
    const { viewer } = this.parts;
    viewer.setSize(frame.widthPx, frame.heightPx);
    const isMoving = viewer.advance(frame.nowMs);
    viewer.store.tick();
    const lanes = viewer.visibleLanes();
    this.ground(frame, lanes, overlay);
    this.slices(frame, lanes, overlay);
    this.inBoth(frame, (isPinned) => {
      for (const visible of lanes) {
        if (visible.isPinned !== isPinned || visible.lane.kind !== 'counter') continue;
        drawCounter(frame, viewer, this.parts.counters, visible);
      }
    });
    drawOverlay(frame, viewer, overlay);
    return isMoving;
  }

  /** Draws twice: clipped to the pinned tracks, and to those below. */
  private inBoth(frame: Frame, draw: (isPinned: boolean) => void): void {
    const { context, widthPx, heightPx } = frame;
    const { pinnedPx } = this.parts.viewer.layout;
    for (const isPinned of [false, true]) {
      context.save();
      context.beginPath();
      if (isPinned) context.rect(0, 0, widthPx, pinnedPx);
      else context.rect(0, pinnedPx, widthPx, heightPx - pinnedPx);
      context.clip();
      draw(isPinned);
      context.restore();
    }
  }

  private ground(frame: Frame, lanes: readonly VisibleLane[], { steps }: Overlay): void {
    const { context, widthPx, heightPx, tokens } = frame;
    context.fillStyle = tokens.surface;
    context.fillRect(0, 0, widthPx, heightPx);
    this.inBoth(frame, (isPinned) => {
      for (const { lane, y } of lanes.filter((visible) => visible.isPinned === isPinned)) {
        context.fillStyle = tokens.sunken;
        if (lane.kind === 'group') context.fillRect(0, y, widthPx, lane.heightPx);
        context.fillStyle = tokens.lineSoft;
        context.fillRect(0, y + lane.heightPx - 1, widthPx, 1);
      }
    });
    this.stepLines(frame, steps);
  }

  /** Starts of steps; none if they are too dense. */
  private stepLines({ context, widthPx, heightPx, tokens }: Frame, steps: Overlay['steps']): void {
    const { viewer } = this.parts;
    const visible = steps
      .map((step) => Math.round(viewer.xOf(step.start_ns)))
      .filter((x) => x >= 0 && x <= widthPx);
    if (visible.length * LEAST_STEP_PX > widthPx) return;
    context.fillStyle = tokens.line;
    for (const x of visible) context.fillRect(x, 0, 1, heightPx);
  }

  private slices(frame: Frame, lanes: readonly VisibleLane[], overlay: Overlay): void {
    const { context, ratio, widthPx } = frame;
    const { viewer, palette } = this.parts;
    const rows = rowsOf(lanes, frame);
    this.pixels.begin(Math.round(widthPx * ratio), rows.length);
    const painting: Painting = {
      store: viewer.store,
      palette,
      theme: frame.theme,
      view: viewer.view,
      level: viewer.level,
      pixels: this.pixels,
      labels: [],
      merged: [],
      leastLabelPx: LEAST_LABEL_PX * ratio,
      highlightedNames: overlay.highlightedNames,
      highlightedEvents: overlay.finding?.events ?? null,
    };
    for (const { line, visible, row, heightPx } of rows) {
      const hasLabels = heightPx >= LABELS_FROM_PX;
      paintRow(painting, { line, track: visible.lane.track.id, row, hasLabels });
    }
    this.strips.put(this.pixels);
    this.inBoth(frame, (isPinned) => {
      context.imageSmoothingEnabled = false;
      const isHere = ({ line }: { line: number }): boolean =>
        rows[line]?.visible.isPinned === isPinned;
      for (const row of rows.filter(isHere)) {
        const { line, y, heightPx } = row;
        this.strips.draw(context, line, { x: 0, y, widthPx, heightPx });
      }
      this.hatching(frame, painting.merged.filter(isHere), rows);
      this.labels(frame, painting.labels.filter(isHere), rows);
    });
  }

  /** Hatching of slices that merge many events. */
  private hatching(frame: Frame, runs: readonly MergedRun[], rows: readonly VisibleRow[]): void {
    const { context, ratio } = frame;
    const pattern = this.hatchOf(frame);
    if (!pattern || runs.length === 0) return;
    context.fillStyle = pattern;
    for (const { line, fromPx, toPx } of runs) {
      const row = rows[line];
      if (row) context.fillRect(fromPx / ratio, row.y, (toPx - fromPx) / ratio, row.heightPx);
    }
  }

  private hatchOf({ context, theme, ratio, tokens }: Frame): CanvasPattern | null {
    const key = `${theme} ${ratio}`;
    if (this.hatch?.key === key) return this.hatch.pattern;
    const size = 6;
    const tile = document.createElement('canvas');
    tile.width = size;
    tile.height = size;
    const drawing = tile.getContext('2d');
    if (!drawing) return null;
    drawing.strokeStyle = tokens.surface;
    drawing.globalAlpha = 0.42;
    drawing.lineWidth = 1.4;
    for (const shift of [-size, 0, size]) {
      drawing.beginPath();
      drawing.moveTo(shift - 1, size + 1);
      drawing.lineTo(shift + size + 1, -1);
      drawing.stroke();
    }
    this.hatch = { key, pattern: context.createPattern(tile, 'repeat') };
    return this.hatch.pattern;
  }

  private shortNameOf(name: number): string {
    let short = this.shortNames.get(name);
    if (short === undefined) {
      short = shortName(this.names[name] ?? '');
      this.shortNames.set(name, short);
    }
    return short;
  }

  private labels(frame: Frame, labels: readonly Label[], rows: readonly VisibleRow[]): void {
    const { context, theme, ratio, tokens, widthPx } = frame;
    const font = `${FONT_PX}px ${tokens.sans}`;
    const fitter = fitterOf(context, font);
    context.font = font;
    context.textBaseline = 'middle';
    context.textAlign = 'left';
    for (const { line, name, fromPx, toPx, isDim } of labels) {
      const row = rows[line];
      if (!row) continue;
      // A slice that begins left of the screen is labelled, too.
      const from = Math.max(0, fromPx / ratio) + LABEL_MARGIN_PX;
      const room = Math.min(widthPx, toPx / ratio) - from - LABEL_MARGIN_PX;
      const short = this.shortNameOf(name);
      const isRoomy = fitter.widthPx(short) <= room;
      const text = fitter.fit(isRoomy ? short : briefName(short), room);
      if (text === '') continue;
      context.fillStyle = isDim ? tokens.muted : INK[theme];
      context.fillText(text, from, row.y + row.heightPx / 2 + 0.5);
    }
  }
}
