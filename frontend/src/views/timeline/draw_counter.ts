/** Draws a counter: a step curve over a band from the lowest to the highest value. */
import type { TimelineCounter } from '../../api/types.gen';
import type { Frame } from '../../canvas/surface';
import { quantity } from '../../core/format';
import type { CounterStore } from './stores';
import { tilesOf } from './tiles';
import type { Viewer, VisibleLane } from './viewer';

const PADDING_PX = 4;

type CounterUnit = 'bytes' | 'share' | 'bytes/s' | 'count';

/** The display unit of a counter. */
export const unitOf = (unit: string): CounterUnit =>
  unit === 'bytes' || unit === 'share' || unit === 'bytes/s' ? unit : 'count';

function seenBuckets(viewer: Viewer, counters: CounterStore, track: number): TimelineCounter[] {
  const { first, last } = tilesOf(viewer.level, viewer.view);
  const buckets: TimelineCounter[] = [];
  for (let tile = first; tile <= last; tile += 1) {
    const here = counters.find(track, viewer.level, tile);
    if (here && !buckets.includes(here)) buckets.push(here);
  }
  return buckets;
}

type ToPx = (value: number) => number;

/** The visible buckets with values. */
function* visibleBuckets(
  viewer: Viewer,
  tile: TimelineCounter,
): Generator<{ x: number; at: number }> {
  const { start, end } = viewer.view;
  const from = Math.max(0, Math.floor((start - tile.start_ns) / tile.bucket_ns));
  const to = Math.min(tile.last.length, Math.ceil((end - tile.start_ns) / tile.bucket_ns));
  for (let at = from; at < to; at += 1) {
    if (tile.last[at] !== null) yield { x: viewer.xOf(tile.start_ns + at * tile.bucket_ns), at };
  }
}

function drawBuckets(frame: Frame, viewer: Viewer, tile: TimelineCounter, yOf: ToPx): void {
  const { context, tokens } = frame;
  const width = tile.bucket_ns / viewer.nsPerPx;
  const base = yOf(0);
  let lastAt = Number.NaN;
  context.beginPath();
  for (const { x, at } of visibleBuckets(viewer, tile)) {
    const y = yOf(tile.last[at] ?? 0);
    const [low, high] = [yOf(tile.min[at] ?? 0), yOf(tile.max[at] ?? 0)];
    context.globalAlpha = 0.16;
    context.fillRect(x, Math.min(base, y), width, Math.abs(base - y));
    context.globalAlpha = 0.4;
    if (low - high >= 1) context.fillRect(x, high, width, low - high);
    if (at === lastAt + 1) context.lineTo(x, y);
    else context.moveTo(x, y);
    context.lineTo(x + width, y);
    lastAt = at;
  }
  context.globalAlpha = 1;
  context.strokeStyle = tokens.accent;
  context.lineWidth = 1.25;
  context.stroke();
}

function drawScale({ context, tokens }: Frame, text: string, y: number): void {
  context.font = `10px ${tokens.sans}`;
  context.textAlign = 'left';
  context.textBaseline = 'top';
  context.globalAlpha = 0.8;
  context.fillStyle = tokens.surface;
  context.fillRect(2, y + 2, context.measureText(text).width + 4, 12);
  context.globalAlpha = 1;
  context.fillStyle = tokens.muted;
  context.fillText(text, 4, y + 3);
}

export function drawCounter(
  frame: Frame,
  viewer: Viewer,
  counters: CounterStore,
  { lane, y }: VisibleLane,
): void {
  const tiles = seenBuckets(viewer, counters, lane.track.id);
  // The scale of the whole trace, including 0: it does not change while the view moves.
  const least = Math.min(0, tiles[0]?.least ?? 0);
  const most = Math.max(0, tiles[0]?.most ?? 0);
  if (most <= least) return;
  const room = lane.heightPx - 2 * PADDING_PX;
  const yOf: ToPx = (value) => y + PADDING_PX + (1 - (value - least) / (most - least)) * room;
  frame.context.fillStyle = frame.tokens.accent;
  for (const tile of tiles) drawBuckets(frame, viewer, tile, yOf);
  if (lane.isOpen) drawScale(frame, quantity(most, unitOf(lane.track.unit)), y);
}

/** The values of a counter at a time; null without a sample. */
export function counterAt(
  viewer: Viewer,
  counters: CounterStore,
  track: number,
  timeNs: number,
): { readonly min: number; readonly max: number; readonly last: number } | null {
  for (const tile of seenBuckets(viewer, counters, track)) {
    const at = Math.floor((timeNs - tile.start_ns) / tile.bucket_ns);
    const [min, max, last] = [tile.min[at], tile.max[at], tile.last[at]];
    if (typeof min === 'number' && typeof max === 'number' && typeof last === 'number') {
      return { min, max, last };
    }
  }
  return null;
}
