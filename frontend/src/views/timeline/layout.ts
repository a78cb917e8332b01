/** The layout of the tracks: visibility, order, open or collapsed, height. Pure. */
import type { Settings } from './settings';
import type { Timeline, Track } from './wire';

export const ROW_PX = 18;
const LEAST_LANE_PX = 24;
const GROUP_PX = 26;
const COUNTER_PX = 44;
const MINI_PX = 20;
const MINI_ROW_PX = 7;
const PADDING_PX = 6;
/** A pinned track takes no more, so that others are visible below it. */
const PINNED_ROWS_PX = 144;

/** The form of a track: rows, collapsed rows, a curve, or the heading of a group. */
export type LaneKind = 'rows' | 'mini' | 'counter' | 'group';

export interface Lane {
  readonly track: Track;
  readonly kind: LaneKind;
  readonly isOpen: boolean;
  /** Whether it can be opened and collapsed. */
  readonly canOpen: boolean;
  /** Number of groups around it. */
  readonly depth: number;
  readonly topPx: number;
  readonly heightPx: number;
  readonly rowPx: number;
  /** Drawn rows. */
  readonly rows: number;
}

export interface Layout {
  readonly lanes: readonly Lane[];
  readonly pinned: readonly Lane[];
  readonly heightPx: number;
  readonly pinnedPx: number;
  /** Tracks hidden by the user. */
  readonly hiddenCount: number;
}

type LayoutSettings = Pick<
  Settings,
  'pinned' | 'toggled' | 'hidden' | 'kinds' | 'filter' | 'order'
>;

/** The tracks with all counters below the others, in a group that is collapsed at first. */
export function withCounterGroup(tracks: Timeline['tracks']): Timeline['tracks'] {
  const counters = tracks.filter((track) => track.kind === 'counter');
  const hasOthers = tracks.some(({ kind }) => kind !== 'counter' && kind !== 'group');
  if (counters.length === 0 || !hasOthers) return tracks;
  // Links refer to tracks by number: the added one follows the server's.
  const id = Math.max(...tracks.map((track) => track.id)) + 1;
  const labels = new Map(tracks.map((track) => [track.id, track.label]));
  const group: Track = {
    id,
    parent: null,
    kind: 'group',
    label: 'Counters',
    detail: counters.map((track) => track.label).join(', '),
    row_count: 0,
    event_count: null,
    busy_ns: null,
    order: Math.max(...tracks.map((track) => track.order)) + 1,
    unit: '',
    is_open: false,
  };
  const moved = (track: Track): Track => {
    const subject = track.parent === null ? undefined : labels.get(track.parent);
    const detail = [subject, track.detail].filter(Boolean).join(', ');
    return { ...track, parent: id, detail };
  };
  return [...tracks.map((track) => (track.kind === 'counter' ? moved(track) : track)), group];
}

interface Node {
  readonly track: Track;
  readonly children: readonly Node[];
}

/** Siblings in the order of the user; unmoved ones keep the order of the server. */
function inOrder(tracks: readonly Track[], order: readonly number[]): Track[] {
  const positions = new Map(order.map((id, at) => [id, at]));
  const usual = [...tracks].sort((a, b) => a.order - b.order);
  const moved = usual
    .filter((track) => positions.has(track.id))
    .sort((a, b) => (positions.get(a.id) ?? 0) - (positions.get(b.id) ?? 0));
  // Moved tracks share the positions that they had together.
  return usual.map((track) => (positions.has(track.id) ? (moved.shift() ?? track) : track));
}

function treeOf(tracks: readonly Track[], order: readonly number[]): Node[] {
  const ids = new Set(tracks.map((track) => track.id));
  const byParent = new Map<number | null, Track[]>();
  for (const track of tracks) {
    const parent = track.parent !== null && ids.has(track.parent) ? track.parent : null;
    byParent.set(parent, [...(byParent.get(parent) ?? []), track]);
  }
  const below = (parent: number | null, depth: number): Node[] =>
    depth > 8
      ? []
      : inOrder(byParent.get(parent) ?? [], order).map((track) => ({
          track,
          children: below(track.id, depth + 1),
        }));
  return below(null, 0);
}

const isLike = ({ label, detail }: Track, filter: string): boolean =>
  `${label} ${detail}`.toLowerCase().includes(filter);

/** The filtered nodes: a group needs a child; a group that matches keeps all children. */
function filtered(nodes: readonly Node[], settings: LayoutSettings, filter: string): Node[] {
  return nodes.flatMap((node) => {
    const { track } = node;
    if (settings.hidden.includes(track.id) || settings.kinds.includes(track.kind)) return [];
    const fits = filter === '' || isLike(track, filter);
    const children = filtered(node.children, settings, fits ? '' : filter);
    const isEmptyGroup = track.kind === 'group' && children.length === 0;
    return isEmptyGroup || !(fits || children.length > 0) ? [] : [{ track, children }];
  });
}

function sizeOf(track: Track, isOpen: boolean): Pick<Lane, 'kind' | 'heightPx' | 'rowPx' | 'rows'> {
  if (track.kind === 'group') return { kind: 'group', heightPx: GROUP_PX, rowPx: 0, rows: 0 };
  if (track.kind === 'counter') {
    return { kind: 'counter', heightPx: isOpen ? COUNTER_PX : LEAST_LANE_PX, rowPx: 0, rows: 0 };
  }
  if (isOpen || track.row_count <= 1) {
    const rows = Math.max(1, track.row_count);
    const heightPx = Math.max(LEAST_LANE_PX, rows * ROW_PX + PADDING_PX);
    return { kind: 'rows', heightPx, rowPx: ROW_PX, rows };
  }
  const rowPx = Math.max(1, Math.min(MINI_ROW_PX, Math.floor(MINI_PX / track.row_count)));
  const rows = Math.min(track.row_count, Math.floor(MINI_PX / rowPx));
  return { kind: 'mini', heightPx: MINI_PX + PADDING_PX, rowPx, rows };
}

export const isOpenTrack = (track: Track, toggled: readonly number[]): boolean =>
  track.is_open !== toggled.includes(track.id);

function laneOf({ track, children }: Node, depth: number, settings: LayoutSettings): Lane {
  const isOpen = isOpenTrack(track, settings.toggled);
  const canOpen = children.length > 0 || track.row_count > 1 || track.kind === 'counter';
  return { track, isOpen, canOpen, depth, topPx: 0, ...sizeOf(track, isOpen) };
}

/** The lane of a pinned track: the rows of a deep one are lower. */
function pinnedLane(track: Track, settings: LayoutSettings): Lane {
  const lane = laneOf({ track, children: [] }, 0, settings);
  if (lane.rows * lane.rowPx <= PINNED_ROWS_PX) return lane;
  const rowPx = Math.max(1, Math.floor(PINNED_ROWS_PX / lane.rows));
  const rows = Math.min(lane.rows, Math.floor(PINNED_ROWS_PX / rowPx));
  return { ...lane, rowPx, rows, heightPx: rows * rowPx + PADDING_PX };
}

function lanesOf(nodes: readonly Node[], depth: number, settings: LayoutSettings): Lane[] {
  return nodes.flatMap((node) => {
    const lane = laneOf(node, depth, settings);
    const isOpen = lane.isOpen || settings.filter !== '';
    return [lane, ...(isOpen ? lanesOf(node.children, depth + 1, settings) : [])];
  });
}

function stacked(lanes: readonly Lane[]): { lanes: Lane[]; heightPx: number } {
  let topPx = 0;
  const positioned = lanes.map((lane) => {
    const here = { ...lane, topPx };
    topPx += lane.heightPx;
    return here;
  });
  return { lanes: positioned, heightPx: topPx };
}

export function layoutOf(timeline: Pick<Timeline, 'tracks'>, settings: LayoutSettings): Layout {
  const { tracks } = timeline;
  const nodes = filtered(
    treeOf(tracks, settings.order),
    settings,
    settings.filter.trim().toLowerCase(),
  );
  const track = stacked(lanesOf(nodes, 0, settings));
  const pinned = stacked(
    settings.pinned.flatMap((id) => {
      const track = tracks.find((track) => track.id === id && track.kind !== 'group');
      return track ? [pinnedLane(track, settings)] : [];
    }),
  );
  const hiddenCount = tracks.filter(
    (track) => settings.hidden.includes(track.id) || settings.kinds.includes(track.kind),
  ).length;
  return {
    lanes: track.lanes,
    heightPx: track.heightPx,
    pinned: pinned.lanes,
    pinnedPx: pinned.heightPx,
    hiddenCount,
  };
}

/** The lane at a height; lanes are in order and without gaps. */
export function laneAt(lanes: readonly Lane[], px: number): Lane | undefined {
  let [low, high] = [0, lanes.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    const lane = lanes[middle];
    if (lane && lane.topPx + lane.heightPx > px) high = middle;
    else low = middle + 1;
  }
  const lane = lanes[low];
  return lane && lane.topPx <= px ? lane : undefined;
}

/** The start of a row in its lane; rows are centred vertically. */
export const rowTopPx = (lane: Lane, row: number): number =>
  Math.floor((lane.heightPx - lane.rows * lane.rowPx) / 2) + row * lane.rowPx;

export function rowAt(lane: Lane, px: number): number | null {
  const row = Math.floor((px - rowTopPx(lane, 0)) / lane.rowPx);
  return lane.rowPx > 0 && row >= 0 && row < lane.rows ? row : null;
}

/** The order of tracks once one of them is among its siblings at another position. */
function moved(
  tracks: readonly Track[],
  order: readonly number[],
  id: number,
  toIndex: (siblings: readonly number[]) => number,
): number[] {
  const parent = tracks.find((track) => track.id === id)?.parent;
  if (parent === undefined) return [...order];
  const siblings = inOrder(
    tracks.filter((track) => track.parent === parent),
    order,
  ).map((track) => track.id);
  const to = toIndex(siblings);
  if (to < 0) return [...order];
  siblings.splice(to, 0, ...siblings.splice(siblings.indexOf(id), 1));
  return [...order.filter((other) => !siblings.includes(other)), ...siblings];
}

/** The order once a track moves by one position. */
export const movedBy = (
  tracks: readonly Track[],
  order: readonly number[],
  { id, by }: { readonly id: number; readonly by: -1 | 1 },
): number[] =>
  moved(tracks, order, id, (siblings) =>
    Math.max(0, Math.min(siblings.length - 1, siblings.indexOf(id) + by)),
  );

/** The order once a track takes the position of a sibling. */
export const movedTo = (
  tracks: readonly Track[],
  order: readonly number[],
  { id, onto }: { readonly id: number; readonly onto: number },
): number[] =>
  id === onto ? [...order] : moved(tracks, order, id, (siblings) => siblings.indexOf(onto));
