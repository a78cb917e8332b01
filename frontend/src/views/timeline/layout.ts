/** Where each track lies: which are shown, in which order, open or small, and how high. Pure. */
import type { Settings } from './settings';
import type { Timeline, Track } from './wire';

export const ROW_PX = 18;
const LEAST_LANE_PX = 24;
const GROUP_PX = 26;
const COUNTER_PX = 44;
const MINI_PX = 20;
const MINI_ROW_PX = 7;
const PADDING_PX = 6;

/** How a track is drawn: its rows, all rows small, a curve, or as the heading of others. */
export type LaneKind = 'rows' | 'mini' | 'counter' | 'group';

export interface Lane {
  readonly track: Track;
  readonly kind: LaneKind;
  readonly isOpen: boolean;
  /** True where opening would show more. */
  readonly canOpen: boolean;
  /** How deep below groups. */
  readonly depth: number;
  readonly topPx: number;
  readonly heightPx: number;
  readonly rowPx: number;
  /** Rows that are drawn. */
  readonly rows: number;
}

export interface Layout {
  readonly lanes: readonly Lane[];
  readonly pinned: readonly Lane[];
  readonly heightPx: number;
  readonly pinnedPx: number;
  /** Tracks that are not shown, by the user's own choice. */
  readonly hiddenCount: number;
}

type Wants = Pick<Settings, 'pinned' | 'toggled' | 'hidden' | 'kinds' | 'filter' | 'order'>;

interface Node {
  readonly track: Track;
  readonly children: readonly Node[];
}

/** Siblings as the user put them; those he never moved stand as the server has them. */
function inOrder(tracks: readonly Track[], order: readonly number[]): Track[] {
  const places = new Map(order.map((id, at) => [id, at]));
  const usual = [...tracks].sort((a, b) => a.order - b.order);
  const moved = usual
    .filter((track) => places.has(track.id))
    .sort((a, b) => (places.get(a.id) ?? 0) - (places.get(b.id) ?? 0));
  // The moved take the places that they have between them.
  return usual.map((track) => (places.has(track.id) ? (moved.shift() ?? track) : track));
}

function treeOf(tracks: readonly Track[], order: readonly number[]): Node[] {
  const known = new Set(tracks.map((track) => track.id));
  const byParent = new Map<number | null, Track[]>();
  for (const track of tracks) {
    const parent = track.parent !== null && known.has(track.parent) ? track.parent : null;
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

/** The nodes that are wanted: a group goes with its last child, and comes with all where its own label fits. */
function kept(nodes: readonly Node[], wants: Wants, filter: string): Node[] {
  return nodes.flatMap((node) => {
    const { track } = node;
    if (wants.hidden.includes(track.id) || wants.kinds.includes(track.kind)) return [];
    const fits = filter === '' || isLike(track, filter);
    const children = kept(node.children, wants, fits ? '' : filter);
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

function laneOf({ track, children }: Node, depth: number, wants: Wants): Lane {
  const isOpen = isOpenTrack(track, wants.toggled);
  const canOpen = children.length > 0 || track.row_count > 1 || track.kind === 'counter';
  return { track, isOpen, canOpen, depth, topPx: 0, ...sizeOf(track, isOpen) };
}

function lanesOf(nodes: readonly Node[], depth: number, wants: Wants): Lane[] {
  return nodes.flatMap((node) => {
    const lane = laneOf(node, depth, wants);
    const isOpen = lane.isOpen || wants.filter !== '';
    return [lane, ...(isOpen ? lanesOf(node.children, depth + 1, wants) : [])];
  });
}

function stacked(lanes: readonly Lane[]): { lanes: Lane[]; heightPx: number } {
  let topPx = 0;
  const placed = lanes.map((lane) => {
    const here = { ...lane, topPx };
    topPx += lane.heightPx;
    return here;
  });
  return { lanes: placed, heightPx: topPx };
}

export function layoutOf(timeline: Pick<Timeline, 'tracks'>, wants: Wants): Layout {
  const { tracks } = timeline;
  const nodes = kept(treeOf(tracks, wants.order), wants, wants.filter.trim().toLowerCase());
  const own = stacked(lanesOf(nodes, 0, wants));
  const pinned = stacked(
    wants.pinned.flatMap((id) => {
      const track = tracks.find((each) => each.id === id && each.kind !== 'group');
      return track ? [laneOf({ track, children: [] }, 0, wants)] : [];
    }),
  );
  const hiddenCount = tracks.filter(
    (track) => wants.hidden.includes(track.id) || wants.kinds.includes(track.kind),
  ).length;
  return {
    lanes: own.lanes,
    heightPx: own.heightPx,
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
  const found = lanes[low];
  return found && found.topPx <= px ? found : undefined;
}

/** Where in its lane a row begins: rows stand in the middle of what they do not fill. */
export const rowTopPx = (lane: Lane, row: number): number =>
  Math.floor((lane.heightPx - lane.rows * lane.rowPx) / 2) + row * lane.rowPx;

export function rowAt(lane: Lane, px: number): number | null {
  const row = Math.floor((px - rowTopPx(lane, 0)) / lane.rowPx);
  return lane.rowPx > 0 && row >= 0 && row < lane.rows ? row : null;
}

/** The order of all siblings of a track once it is moved by one place among those that are shown. */
export function movedBy(
  tracks: readonly Track[],
  order: readonly number[],
  move: { readonly id: number; readonly by: -1 | 1 },
): number[] {
  const own = tracks.find((track) => track.id === move.id);
  if (!own) return [...order];
  const siblings = inOrder(
    tracks.filter((track) => track.parent === own.parent),
    order,
  ).map((track) => track.id);
  const from = siblings.indexOf(move.id);
  const to = Math.max(0, Math.min(siblings.length - 1, from + move.by));
  siblings.splice(to, 0, ...siblings.splice(from, 1));
  return [...order.filter((id) => !siblings.includes(id)), ...siblings];
}

/** The order of all siblings once one is dropped on another: it takes that one's place. */
export function movedTo(
  tracks: readonly Track[],
  order: readonly number[],
  move: { readonly id: number; readonly onto: number },
): number[] {
  const parentOf = (id: number): number | null | undefined =>
    tracks.find((track) => track.id === id)?.parent;
  if (move.id === move.onto || parentOf(move.id) !== parentOf(move.onto)) return [...order];
  const parent = parentOf(move.id);
  const siblings = inOrder(
    tracks.filter((track) => track.parent === parent),
    order,
  ).map((track) => track.id);
  const to = siblings.indexOf(move.onto);
  siblings.splice(to, 0, ...siblings.splice(siblings.indexOf(move.id), 1));
  return [...order.filter((id) => !siblings.includes(id)), ...siblings];
}
