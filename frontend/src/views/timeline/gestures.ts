/** Pointer and wheel on the tracks: select an area, pan, zoom. */
import { isFreeKey } from '../../host/typing';
import type { Area } from './settings';
import type { Point, Viewer } from './viewer';

/** What dragging does; Shift and drag does the other. */
export type DragMode = 'select' | 'pan';

export interface Gestures {
  readonly dragMode: DragMode;
  readonly click: (point: Point) => void;
  readonly doubleClick: (point: Point) => void;
  /** A selected area: a time range of the tracks that the drag crossed. */
  readonly area: (area: Area) => void;
  readonly scrollBy: (px: number) => void;
}

const CLICK_PX = 4;
const LINE_PX = 16;
const MOST_WHEEL = 60;
const ZOOM_PER_PX = 0.006;

const pointOf = (canvas: HTMLElement, event: MouseEvent): Point => {
  const box = canvas.getBoundingClientRect();
  return { x: event.clientX - box.left, y: event.clientY - box.top };
};

/** A wheel delta in pixels. */
const inPx = (event: WheelEvent, way: number): number =>
  event.deltaMode === WheelEvent.DOM_DELTA_LINE ? way * LINE_PX : way;

/** The zoom factor of a wheel delta, limited: pinches send small deltas, wheels large ones. */
export const zoomFactor = (way: number): number =>
  Math.exp(Math.max(-MOST_WHEEL, Math.min(MOST_WHEEL, way)) * ZOOM_PER_PX);

function onWheel(viewer: Viewer, canvas: HTMLElement, gestures: Gestures, event: WheelEvent): void {
  const x = inPx(event, event.deltaX);
  const y = inPx(event, event.deltaY);
  event.preventDefault();
  if (event.ctrlKey || event.metaKey) viewer.zoomAt(pointOf(canvas, event).x, zoomFactor(y));
  else if (event.shiftKey) viewer.panPx(x === 0 ? y : x);
  else if (Math.abs(x) > Math.abs(y)) viewer.panPx(x);
  else gestures.scrollBy(y);
}

interface Pan {
  readonly kind: 'pan';
  readonly from: Point;
  last: Point;
  isMoved: boolean;
}

/** The part of a pointer event that decides what dragging does. */
export type Press = Pick<PointerEvent, 'button' | 'shiftKey' | 'pointerType'>;

const LEFT = 0;
const MIDDLE = 1;

/** What a drag does: fingers, the middle button and a held space bar pan. */
export function dragKind(press: Press, mode: DragMode, isSpaceHeld: boolean): DragMode {
  if (press.button === MIDDLE || press.pointerType === 'touch' || isSpaceHeld) return 'pan';
  const other = mode === 'select' ? 'pan' : 'select';
  return press.shiftKey ? other : mode;
}

interface AreaDrag {
  readonly kind: 'select';
  readonly from: Point;
  isMoved: boolean;
}

interface Pinch {
  readonly kind: 'pinch';
  distancePx: number;
}

class Dragging {
  private readonly points = new Map<number, Point>();
  private drag: Pan | AreaDrag | Pinch | null = null;

  constructor(
    private readonly viewer: Viewer,
    private readonly gestures: Gestures,
  ) {}

  private spread(): { distancePx: number; middle: number } {
    const [a, b] = [...this.points.values()];
    if (!(a && b)) return { distancePx: 1, middle: 0 };
    return { distancePx: Math.max(8, Math.hypot(a.x - b.x, a.y - b.y)), middle: (a.x + b.x) / 2 };
  }

  down(id: number, point: Point, kind: DragMode): void {
    this.points.set(id, point);
    if (this.points.size === 2) this.drag = { kind: 'pinch', distancePx: this.spread().distancePx };
    else if (kind === 'select') this.drag = { kind, from: point, isMoved: false };
    else this.drag = { kind, from: point, last: point, isMoved: false };
  }

  move(id: number, point: Point): void {
    if (this.points.has(id)) this.points.set(id, point);
    const { drag } = this;
    if (drag === null) this.viewer.point(point);
    else if (drag.kind === 'pinch') this.pinch(drag);
    else if (drag.kind === 'select') this.select(drag, point);
    else this.pan(drag, point);
  }

  private pinch(drag: Pinch): void {
    const { distancePx, middle } = this.spread();
    this.viewer.zoomAt(middle, drag.distancePx / distancePx);
    drag.distancePx = distancePx;
  }

  private pan(drag: Pan, point: Point): void {
    drag.isMoved ||= Math.hypot(point.x - drag.from.x, point.y - drag.from.y) >= CLICK_PX;
    if (!drag.isMoved) return;
    this.viewer.panPx(drag.last.x - point.x);
    this.gestures.scrollBy(drag.last.y - point.y);
    drag.last = point;
    this.viewer.point(point);
  }

  private select(drag: AreaDrag, point: Point): void {
    drag.isMoved ||= Math.abs(point.x - drag.from.x) >= CLICK_PX;
    if (!drag.isMoved) return;
    this.viewer.draft = this.areaOf(drag, point);
    this.viewer.point(null); // a tooltip would cover the area
  }

  private areaOf(drag: AreaDrag, point: Point): Area {
    const { viewer } = this;
    const [left, right] = [Math.min(drag.from.x, point.x), Math.max(drag.from.x, point.x)];
    const [top, bottom] = [Math.min(drag.from.y, point.y), Math.max(drag.from.y, point.y)];
    const tracks = viewer
      .visibleLanes()
      .filter(({ lane, y }) => lane.rows > 0 && y < bottom && y + lane.heightPx > top)
      .map(({ lane }) => lane.track.id);
    return {
      start: Math.floor(Math.max(viewer.bounds.start, viewer.timeAt(left))),
      end: Math.ceil(Math.min(viewer.bounds.end, viewer.timeAt(right))),
      tracks: [...new Set(tracks)],
    };
  }

  up(id: number, point: Point, button: number): void {
    const { drag } = this;
    this.points.delete(id);
    if (this.points.size > 0) return;
    this.drag = null;
    if (drag === null || drag.kind === 'pinch') return;
    if (drag.kind === 'select' && drag.isMoved) this.gestures.area(this.areaOf(drag, point));
    if (!drag.isMoved && button === LEFT) this.gestures.click(point);
    this.viewer.draft = null;
    this.viewer.point(point);
  }

  cancel(id: number): void {
    this.points.delete(id);
    this.drag = null;
    this.viewer.draft = null;
  }

  get isPanning(): boolean {
    return this.drag?.kind === 'pan' && this.drag.isMoved;
  }
}

/** Whether the space bar is held, for which the canvas shows a hand. */
function listenToSpace(canvas: HTMLElement, signal: AbortSignal): () => boolean {
  let isHeld = false;
  const set = (held: boolean): void => {
    isHeld = held;
    canvas.classList.toggle('can-pan', held);
  };
  document.addEventListener(
    'keydown',
    (event) => {
      // On a button, a tab or a link it presses that.
      const isHere = event.target === canvas || event.target === document.body;
      if (event.key !== ' ' || !isHere || !isFreeKey(event)) return;
      event.preventDefault();
      set(true);
    },
    { signal },
  );
  document.addEventListener('keyup', (event) => event.key === ' ' && set(false), { signal });
  window.addEventListener('blur', () => set(false), { signal });
  return () => isHeld;
}

/** Listens on the canvas and returns how to stop; every gesture reads `latest` again. */
export function listen(
  viewer: Viewer,
  canvas: HTMLCanvasElement,
  latest: () => Gestures,
): () => void {
  const gestures: Gestures = {
    get dragMode() {
      return latest().dragMode;
    },
    click: (point) => latest().click(point),
    doubleClick: (point) => latest().doubleClick(point),
    area: (area) => latest().area(area),
    scrollBy: (px) => latest().scrollBy(px),
  };
  const dragging = new Dragging(viewer, gestures);
  const ended = new AbortController();
  const { signal } = ended;
  const isSpaceHeld = listenToSpace(canvas, signal);
  const on = <K extends keyof HTMLElementEventMap>(
    type: K,
    act: (event: HTMLElementEventMap[K]) => void,
  ): void => canvas.addEventListener(type, act, { signal, passive: false });
  on('wheel', (event) => onWheel(viewer, canvas, gestures, event));
  on('pointerdown', (event) => {
    if (event.button !== LEFT && event.button !== MIDDLE) return;
    if (event.button === MIDDLE) event.preventDefault(); // no scrolling by the browser
    canvas.setPointerCapture(event.pointerId);
    const kind = dragKind(event, gestures.dragMode, isSpaceHeld());
    dragging.down(event.pointerId, pointOf(canvas, event), kind);
  });
  on('pointermove', (event) => {
    dragging.move(event.pointerId, pointOf(canvas, event));
    canvas.classList.toggle('is-panning', dragging.isPanning);
    canvas.classList.toggle('is-link', viewer.stubAt() !== null);
  });
  on('pointerup', (event) => {
    dragging.up(event.pointerId, pointOf(canvas, event), event.button);
    canvas.classList.remove('is-panning');
  });
  on('pointercancel', (event) => dragging.cancel(event.pointerId));
  on('pointerleave', () => viewer.point(null));
  on('dblclick', (event) => gestures.doubleClick(pointOf(canvas, event)));
  return () => ended.abort();
}
