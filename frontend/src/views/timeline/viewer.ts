/**
 * The state of the timeline that changes with every frame: visible range, scroll position, pointer. It lives outside
 * of React; the range goes to the URL once it stops moving.
 */
import {
  between,
  clamped,
  eased,
  fitted,
  isSameRange,
  lengthOf,
  panned,
  perPx,
  pxOf,
  type Range,
  revealed,
  valueAt,
  zoomed,
} from '../../canvas/viewport';
import { type Lane, type Layout, laneAt, rowAt, rowTopPx } from './layout';
import { isSamePick, type Picked, pick } from './pick';
import type { Area } from './settings';
import { type Stub, stubAt } from './stubs';
import type { TileRequest, TileStore } from './tile_store';
import { levelAmong, tilesOf } from './tiles';

/** The shortest visible range. */
export const LEAST_NS = 40;
const REST_MS = 250;
const MOVE_MS = 180;
/** Least time between requests while the view moves. */
const REQUEST_MS = 60;
const HIT_PX = 3;
const MARGIN_PX = 200;

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** A visible lane; `y` counts from the top of the tracks. */
export interface VisibleLane {
  readonly lane: Lane;
  readonly y: number;
  readonly isPinned: boolean;
}

interface Move {
  readonly from: Range;
  readonly to: Range;
  startMs: number | null;
}

const EMPTY_LAYOUT: Layout = { lanes: [], pinned: [], heightPx: 0, pinnedPx: 0, hiddenCount: 0 };

const prefersCalm = (): boolean =>
  window.matchMedia?.('(prefers-reduced-motion: reduce)').matches ?? false;

export class Viewer {
  view: Range;
  widthPx = 1;
  heightPx = 1;
  scrollPx = 0;
  layout: Layout = EMPTY_LAYOUT;
  pointer: Point | null = null;
  hover: Picked | null = null;
  /** The area that is being dragged. */
  draft: Area | null = null;
  /** Labels of linked slices out of sight, as drawn last. */
  stubs: readonly Stub[] = [];
  /** Scrolls the tracks; set by the component with the scroll bar. */
  scrollTo: (px: number) => void = () => undefined;
  /** Tracks of the minimap, and its width. */
  overview: readonly number[] = [];
  overviewPx: number | null = null;
  private move: Move | null = null;
  private restTimer: ReturnType<typeof setTimeout> | undefined;
  private requestTimer: ReturnType<typeof setTimeout> | undefined;
  private requestedMs = Number.NEGATIVE_INFINITY;
  private readonly drawers = new Set<() => void>();
  private readonly painters = new Set<() => void>();
  private readonly resters = new Set<(view: Range) => void>();

  constructor(
    readonly bounds: Range,
    readonly store: TileStore,
    start: Range | null,
    /** The levels of tiles that there are; empty: all. */
    private readonly levels: readonly number[] = [],
  ) {
    this.view = start ? clamped(start, bounds, LEAST_NS) : bounds;
  }

  /** Registers a callback for every drawing. */
  onDraw(draw: () => void): () => void {
    this.drawers.add(draw);
    return () => this.drawers.delete(draw);
  }

  /** Registers a callback for after the tracks were painted. */
  onPainted(painted: () => void): () => void {
    this.painters.add(painted);
    return () => this.painters.delete(painted);
  }

  painted(): void {
    for (const painted of this.painters) painted();
  }

  /** Registers a callback for when the view stops moving. */
  onRest(rest: (view: Range) => void): () => void {
    this.resters.add(rest);
    return () => this.resters.delete(rest);
  }

  draw = (): void => {
    for (const draw of this.drawers) draw();
  };

  get nsPerPx(): number {
    return perPx(this.view, this.widthPx);
  }

  get level(): number {
    return this.levelFor(this.nsPerPx);
  }

  levelFor(nsPerPx: number): number {
    return levelAmong(this.levels, nsPerPx);
  }

  /** The range at the end of the current move. */
  get goal(): Range {
    return this.move?.to ?? this.view;
  }

  timeAt(x: number): number {
    return valueAt(this.view, this.widthPx, x);
  }

  xOf(timeNs: number): number {
    return pxOf(this.view, this.widthPx, timeNs);
  }

  private changed(): void {
    this.updateHover();
    this.requestTiles();
    this.draw();
    clearTimeout(this.restTimer);
    this.restTimer = setTimeout(() => {
      for (const rest of this.resters) rest(this.view);
    }, REST_MS);
  }

  /** Shows a range at once. */
  show(view: Range): void {
    this.move = null;
    const next = clamped(view, this.bounds, LEAST_NS);
    if (isSameRange(next, this.view)) return;
    this.view = next;
    this.changed();
  }

  /** Moves to a range with an animation. */
  goTo(view: Range): void {
    const to = clamped(view, this.bounds, LEAST_NS);
    if (isSameRange(to, this.goal)) return;
    if (prefersCalm()) this.show(to);
    else {
      this.move = { from: this.view, to, startMs: null };
      this.draw();
    }
  }

  /** Advances the animation; returns whether it goes on. */
  advance(nowMs: number): boolean {
    const { move } = this;
    if (!move) return false;
    move.startMs ??= nowMs;
    const share = Math.min(1, (nowMs - move.startMs) / MOVE_MS);
    if (share >= 1) this.move = null;
    this.view = clamped(between(move.from, move.to, eased(share)), this.bounds, LEAST_NS);
    this.changed();
    return share < 1;
  }

  zoomAt(x: number, factor: number): void {
    const at = this.timeAt(x);
    this.show(zoomed(this.view, this.bounds, { factor, at, least: LEAST_NS }));
  }

  /** Zooms around the pointer, else the middle. */
  zoomBy(factor: number): void {
    const x = this.pointer?.x ?? this.widthPx / 2;
    const at = valueAt(this.goal, this.widthPx, x);
    this.goTo(zoomed(this.goal, this.bounds, { factor, at, least: LEAST_NS }));
  }

  panPx(px: number): void {
    this.show(panned(this.view, this.bounds, px * this.nsPerPx));
  }

  panBy(share: number): void {
    this.goTo(panned(this.goal, this.bounds, share * lengthOf(this.goal)));
  }

  fitAll(): void {
    this.goTo(this.bounds);
  }

  fit(target: Range): void {
    this.goTo(fitted(target, this.bounds, { margin: 0.25, least: LEAST_NS * 4 }));
  }

  /** Makes a slice visible: zooms, pans and scrolls as far as needed. */
  reveal(target: Range, lane: { readonly track: number; readonly row: number } | null): void {
    const isTooSmall = lengthOf(target) / perPx(this.goal, this.widthPx) < 2;
    if (isTooSmall) this.goTo(fitted(target, this.bounds, { margin: 8, least: LEAST_NS * 4 }));
    else this.goTo(revealed(this.goal, target, this.bounds));
    if (lane) this.revealLane(lane.track, lane.row);
  }

  revealLane(track: number, row: number): void {
    const { lanes, pinned, pinnedPx } = this.layout;
    const lane = lanes.find((lane) => lane.track.id === track);
    if (!lane || pinned.some((lane) => lane.track.id === track)) return;
    const top = lane.topPx + rowTopPx(lane, Math.min(row, Math.max(0, lane.rows - 1)));
    const roomPx = this.heightPx - pinnedPx;
    const isInSight = top >= this.scrollPx && top + lane.rowPx <= this.scrollPx + roomPx;
    if (!isInSight) this.scrollTo(Math.max(0, top - roomPx / 3));
  }

  setSize(widthPx: number, heightPx: number): void {
    if (widthPx === this.widthPx && heightPx === this.heightPx) return;
    this.widthPx = Math.max(1, widthPx);
    this.heightPx = heightPx;
    this.requestTiles();
  }

  setLayout(layout: Layout): void {
    this.layout = layout;
    this.updateHover();
    this.requestTiles();
    this.draw();
  }

  setScroll(px: number): void {
    if (px === this.scrollPx) return;
    this.scrollPx = px;
    this.updateHover();
    this.requestTiles();
    this.draw();
  }

  /** The visible lanes, pinned ones first; a margin includes lanes just outside. */
  visibleLanes(marginPx = 0): VisibleLane[] {
    const { pinned, lanes, pinnedPx } = this.layout;
    const visible: VisibleLane[] = pinned.map((lane) => ({ lane, y: lane.topPx, isPinned: true }));
    const from = this.scrollPx - marginPx;
    const to = this.scrollPx + this.heightPx - pinnedPx + marginPx;
    for (const lane of lanes) {
      if (lane.topPx >= to) break;
      if (lane.topPx + lane.heightPx <= from) continue;
      visible.push({ lane, y: pinnedPx + lane.topPx - this.scrollPx, isPinned: false });
    }
    return visible;
  }

  laneAt(y: number): VisibleLane | null {
    const { pinned, lanes, pinnedPx } = this.layout;
    if (y < pinnedPx) {
      const lane = laneAt(pinned, y);
      return lane ? { lane, y: lane.topPx, isPinned: true } : null;
    }
    const lane = laneAt(lanes, y - pinnedPx + this.scrollPx);
    return lane ? { lane, y: pinnedPx + lane.topPx - this.scrollPx, isPinned: false } : null;
  }

  pickAt({ x, y }: Point): Picked | null {
    const hit = this.laneAt(y);
    const row = hit && rowAt(hit.lane, y - hit.y);
    if (!hit || row === null) return null;
    return pick(this.store, {
      track: hit.lane.track.id,
      row,
      timeNs: this.timeAt(x),
      level: this.level,
      toleranceNs: HIT_PX * this.nsPerPx,
    });
  }

  /** The label of a linked slice at the pointer. */
  stubAt(): Stub | null {
    return this.pointer && stubAt(this.stubs, this.pointer);
  }

  point(pointer: Point | null): void {
    this.pointer = pointer;
    this.updateHover();
    this.draw();
  }

  private updateHover(): void {
    const next = this.pointer && this.pickAt(this.pointer);
    if (!isSamePick(next, this.hover)) this.hover = next;
  }

  /** Requests the visible tiles, then those around them, at most every `REQUEST_MS`. */
  requestTiles = (): void => {
    if (this.requestTimer !== undefined) return;
    const waitMs = Math.max(0, REQUEST_MS - (performance.now() - this.requestedMs));
    if (waitMs === 0) this.requestNow();
    else {
      this.requestTimer = setTimeout(() => {
        this.requestTimer = undefined;
        this.requestNow();
      }, waitMs);
    }
  };

  private requestNow(): void {
    // Before the layout there is no width to choose a level by.
    if (this.widthPx <= 1) return;
    this.requestedMs = performance.now();
    this.store.request(this.tileRequests());
  }

  /** The visible tracks with slices. */
  visibleTracks(marginPx = 0): number[] {
    const visible = this.visibleLanes(marginPx);
    return [...new Set(visible.flatMap(({ lane }) => (lane.rows > 0 ? [lane.track.id] : [])))];
  }

  /** Requests in order of urgency: visible tiles, the minimap, then likely next moves. */
  tileRequests(): TileRequest[] {
    const { level, view, bounds } = this;
    const visible = this.visibleTracks();
    const whole = this.levelFor(perPx(bounds, this.overviewPx ?? this.widthPx));
    const isAny = this.levels.length === 0;
    const { first, last } = tilesOf(level, view);
    const { last: end } = tilesOf(level, bounds);
    const neighbours = [last + 1, first - 1].filter((tile) => tile >= 0 && tile <= end);
    const ahead = [
      ...tilesFor(level, view, this.visibleTracks(MARGIN_PX)),
      ...neighbours.map((tile) => ({ level, tile, tracks: visible })),
      ...(isAny && level < whole ? tilesFor(level + 1, view, visible) : []),
      ...(isAny && level > 0 ? tilesFor(level - 1, this.zoomedIn(), visible) : []),
    ];
    return [
      ...tilesFor(level, view, visible),
      ...tilesFor(whole, bounds, this.overview),
      ...ahead.map((tileRequests) => ({ ...tileRequests, isAhead: true })),
    ].filter((tileRequests) => tileRequests.tracks.length > 0);
  }

  /** The likely range after zooming in at the pointer. */
  private zoomedIn(): Range {
    const middle = this.timeAt(this.pointer?.x ?? this.widthPx / 2);
    const quarter = lengthOf(this.view) / 4;
    return clamped({ start: middle - quarter, end: middle + quarter }, this.bounds);
  }

  dispose(): void {
    clearTimeout(this.restTimer);
    clearTimeout(this.requestTimer);
    this.requestTimer = undefined;
    this.store.dispose();
  }
}

function tilesFor(level: number, range: Range, tracks: readonly number[]): TileRequest[] {
  const { first, last } = tilesOf(level, range);
  return Array.from({ length: last - first + 1 }, (_, at) => ({ level, tile: first + at, tracks }));
}
