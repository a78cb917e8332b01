/** The picture of a finding as boxes in pixels, from an excerpt of the timeline. Pure. */
import type {
  ClaimedTime,
  EventReference,
  ExcerptEvent,
  ExcerptLane,
  Outcome,
  TimelineExcerpt,
} from '../../api/types.gen';
import { duration, plural } from '../../core/format';
import { shortName } from '../../core/names';

export const ROW_PX = 17;
export const SLICE_PX = ROW_PX - 2;
const GAP_PX = 6;
const LABEL_LINE_PX = 16;
const BAR_PX = 4;
const TOP_GAP_PX = 3;
const LABELS_PX = 104;
/** Of a narrow picture, the most that labels of tracks take. */
const LABELS_PART = 0.25;
const LEAST_SLICE_PX = 1;
export const LEAST_EVENT_PX = 6;
export const LEAST_CLAIMED_PX = 3;
const EDGES_FROM_PX = 8;
const LEADER_BELOW_PX = 24;
const LEADER_PX = 2;
const CHIP_PADDING_PX = 4;
/** The category of an event on no track. */
const OFF_TRACK = 'other';

export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export interface SliceBox extends Box {
  readonly name: string;
  readonly category: string;
}

/** A line of text, from its left upper corner. */
export interface Text {
  readonly text: string;
  readonly x: number;
  readonly y: number;
}

export interface LaneBox extends Box {
  readonly slices: readonly SliceBox[];
  /** The track's label, and the numbers of levels that are not drawn. */
  readonly labels: readonly Text[];
}

export interface ClaimedBox extends Box {
  /** The bar on top of it. */
  readonly bar: Box;
  /** Lines at its start and end; none where they would hide it. */
  readonly edges: readonly Box[];
}

export interface EventBox extends Box {
  readonly label: Text;
  /** The background of the label. */
  readonly chip: Box;
  /** A line from the label to an event that is too narrow to be seen among others. */
  readonly leader: Box | null;
}

export interface PictureLayout {
  readonly heightPx: number;
  /** Width of the column of labels. */
  readonly labelsPx: number;
  readonly lanes: readonly LaneBox[];
  readonly event: EventBox | null;
  readonly claimed: readonly ClaimedBox[];
  readonly claimedLabel: Text | null;
}

/** What a picture shows: its first event, and the time that is claimed there. */
export interface Subject {
  readonly event: EventReference | null;
  readonly claimed: readonly ClaimedTime[];
}

/** The subject of a finding's picture; null where it has neither an event nor claimed time. */
export function subjectOf({ events, claim, trace }: Outcome): Subject | null {
  const event = events[0] ?? null;
  const claimed = claim?.example_times ?? [];
  return trace !== '' && (event || claimed.length > 0) ? { event, claimed } : null;
}

const written = (startNs: number, endNs: number): string => `${Math.max(0, startNs)}-${endNs}`;

/** The parameters of `timeline/excerpt` for a picture. */
export function excerptParameters({ event, claimed }: Subject): {
  readonly event: number | null;
  readonly event_time: string | null;
  readonly time: string[];
} {
  return {
    event: event?.event ?? null,
    event_time: event && written(event.start_ns, event.start_ns + event.duration_ns),
    time: claimed.map(({ start_ns, end_ns }) => written(start_ns, end_ns)),
  };
}

/** From the first to the last moment of the event and of the claimed times. */
export function extentOf({ event, claimed }: Subject): { startNs: number; endNs: number } {
  const times = claimed.map(({ start_ns, end_ns }) => [start_ns, end_ns] as const);
  if (event) times.push([event.start_ns, event.start_ns + event.duration_ns]);
  return {
    startNs: Math.min(...times.map(([start]) => start)),
    endNs: Math.max(...times.map(([, end]) => end)),
  };
}

export function claimedText(claimed: readonly ClaimedTime[]): string {
  const total = duration(claimed.reduce((sum, time) => sum + time.claimed_ns, 0));
  const parts = claimed.length > 1 ? ` in ${plural(claimed.length, 'part')}` : '';
  return `Claimed: ${total}${parts}`;
}

export const eventText = ({ name, duration_ns }: EventReference): string =>
  `${shortName(name)}, ${duration(duration_ns)}`;

export function laneLabel(lane: ExcerptLane, event: EventReference | null): string {
  if (lane.track !== null || !event) return lane.label;
  return `${event.track.charAt(0).toUpperCase()}${event.track.slice(1)}`;
}

const boxOf = ({ x, y, width, height }: Box): Box => ({ x, y, width, height });

type Extent = readonly [number, number];

/** The extent with a least width around its middle, inside the limits. */
function widened([from, to]: Extent, leastPx: number, [least, most]: Extent): Extent {
  const missing = Math.max(0, leastPx - (to - from)) / 2;
  const start = Math.max(least, Math.min(from - missing, most - leastPx));
  return [start, Math.min(most, Math.max(to + missing, start + leastPx))];
}

type ToPx = (ns: number) => number;

interface Area {
  readonly xOf: ToPx;
  readonly left: number;
  readonly right: number;
}

function slicesOf(lane: ExcerptLane, top: number, { xOf, left, right }: Area): SliceBox[] {
  return lane.name.map((code, at) => {
    const from = Math.max(left, xOf(lane.start_ns[at] ?? 0));
    const to = Math.min(right, xOf(lane.end_ns[at] ?? 0));
    const x = Math.min(from, right - LEAST_SLICE_PX);
    return {
      x,
      y: top + ((lane.rows[at] ?? 0) - lane.first_row) * ROW_PX + 1,
      width: Math.max(LEAST_SLICE_PX, to - x),
      height: SLICE_PX,
      name: lane.names[code] ?? '',
      category: lane.categories[code] ?? OFF_TRACK,
    };
  });
}

const levels = (count: number, where: string): string => `+${plural(count, 'level')} ${where}`;

function labelsOf(lane: ExcerptLane, label: string, top: number): Text[] {
  const lastY = top + (lane.row_count - 1) * ROW_PX;
  const labels = [{ text: label, x: 0, y: top }];
  if (lane.first_row > 0)
    labels.push({ text: levels(lane.first_row, 'above'), x: 0, y: top + ROW_PX });
  if (lane.rows_below > 0) labels.push({ text: levels(lane.rows_below, 'below'), x: 0, y: lastY });
  return labels;
}

interface LabelLine {
  readonly text: string;
  readonly y: number;
  readonly measure: (text: string) => number;
}

function eventBox(
  event: ExcerptEvent,
  y: number,
  area: Area,
  { text, y: labelY, measure }: LabelLine,
): EventBox {
  const ends = [area.xOf(event.start_ns), area.xOf(event.end_ns)] as const;
  const [x, end] = widened(ends, LEAST_EVENT_PX, [area.left, area.right]);
  const width = end - x;
  const mostPx = area.right - area.left;
  const chipPx = Math.min(mostPx, measure(text) + 2 * CHIP_PADDING_PX);
  const chipX = Math.max(area.left, Math.min(x, area.right - chipPx));
  const chip = { x: chipX, y: labelY, width: chipPx, height: LABEL_LINE_PX };
  const leaderY = labelY + LABEL_LINE_PX;
  const middle = x + (width - LEADER_PX) / 2;
  const leader = { x: middle, y: leaderY, width: LEADER_PX, height: y - leaderY };
  const label = { text, x: chipX + CHIP_PADDING_PX, y: labelY };
  const box = { x, y, width, height: SLICE_PX, label, chip };
  return { ...box, leader: width < LEADER_BELOW_PX ? leader : null };
}

function claimedBox({ start_ns, end_ns }: ClaimedTime, heightPx: number, area: Area): ClaimedBox {
  const ends = [area.xOf(start_ns), area.xOf(end_ns)] as const;
  const [x, end] = widened(ends, LEAST_CLAIMED_PX, [area.left, area.right]);
  const y = LABEL_LINE_PX;
  const band = { x, y, width: end - x, height: heightPx - y };
  const edges = [x, end - 1].map((at) => ({ ...band, x: at, width: 1 }));
  const bar = { ...band, height: BAR_PX };
  return { ...band, bar, edges: band.width < EDGES_FROM_PX ? [] : edges };
}

/** The boxes of a picture of some width; `measure` returns the width of a label. */
export function layoutOf(
  excerpt: TimelineExcerpt,
  subject: Subject,
  widthPx: number,
  measure: (text: string) => number,
): PictureLayout {
  const left = Math.min(LABELS_PX, Math.round(widthPx * LABELS_PART));
  const scale = (widthPx - left) / (excerpt.end_ns - excerpt.start_ns);
  const xOf: ToPx = (ns) => left + (ns - excerpt.start_ns) * scale;
  const area: Area = { xOf, left, right: widthPx };
  const claimedPx = subject.claimed.length > 0 ? LABEL_LINE_PX + BAR_PX : 0;
  const eventPx = subject.event ? LABEL_LINE_PX : 0;

  const lanes: LaneBox[] = [];
  let event: PictureLayout['event'] = null;
  let top = claimedPx + eventPx + TOP_GAP_PX;
  for (const lane of excerpt.lanes) {
    const height = lane.row_count * ROW_PX;
    const slices = slicesOf(lane, top, area);
    if (lanes.length === 0 && excerpt.event && subject.event) {
      const y = top + (excerpt.event.row - lane.first_row) * ROW_PX + 1;
      const line = { text: eventText(subject.event), y: claimedPx, measure };
      event = eventBox(excerpt.event, y, area, line);
      if (lane.track === null)
        slices.push({ ...boxOf(event), name: subject.event.name, category: OFF_TRACK });
    }
    const labels = labelsOf(lane, laneLabel(lane, subject.event), top);
    lanes.push({ x: left, y: top, width: widthPx - left, height, slices, labels });
    top += height + GAP_PX;
  }

  const heightPx = top;
  const claimed = subject.claimed.map((time) => claimedBox(time, heightPx, area));
  const widest = [...claimed].sort((a, b) => b.width - a.width)[0];
  const text = claimedText(subject.claimed);
  const latestX = Math.max(left, widthPx - measure(text));
  const claimedLabel = widest ? { text, x: Math.min(widest.x, latestX), y: 0 } : null;
  return { heightPx, labelsPx: left, lanes, event, claimed, claimedLabel };
}

/** The height of a picture, which does not depend on its width. */
export const heightOf = (excerpt: TimelineExcerpt, subject: Subject): number =>
  layoutOf(excerpt, subject, LABELS_PX / LABELS_PART, () => 0).heightPx;
