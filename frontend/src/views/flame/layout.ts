/**
 * The layout of a flame graph. Nodes come by depth with siblings together, so one pass lays them out,
 * and the nodes of one depth are in the order of their positions. Pure.
 */
import type { FlameGraph } from '../../api/types.gen';

/** A node by its index in the columns; -1 is none. */
export type Node = number;
export const NONE: Node = -1;

export interface Layout {
  readonly graph: FlameGraph;
  /** Start and end of each node in weight: the sum of both sides in a comparison. */
  readonly start: Float64Array;
  readonly end: Float64Array;
  readonly depth: Int32Array;
  /** First index of each depth, and the number of nodes. */
  readonly levels: readonly number[];
  readonly whole: number;
  /** Divisor of the values of each side: steps, or 1. */
  readonly scale: readonly [after: number, before: number];
  readonly isCompared: boolean;
}

const scaleOf = (graph: FlameGraph, steps: number): number =>
  graph.is_per_step ? Math.max(1, steps) : 1;

export function layoutOf(graph: FlameGraph): Layout {
  const count = graph.parent.length;
  const isCompared = graph.before_total.length > 0 || graph.before_whole > 0;
  const scale = [scaleOf(graph, graph.steps), scaleOf(graph, graph.before_steps)] as const;
  const start = new Float64Array(count);
  const end = new Float64Array(count);
  const depth = new Int32Array(count);
  /** Start of the next child of each node; at the end, of the next root. */
  const next = new Float64Array(count + 1);
  const levels: number[] = [];
  graph.parent.forEach((parent, node) => {
    const before = isCompared ? (graph.before_total[node] ?? 0) / scale[1] : 0;
    const above = parent < 0 ? count : parent;
    const at = next[above] ?? 0;
    const behind = at + (graph.total[node] ?? 0) / scale[0] + before;
    start[node] = at;
    next[node] = at;
    end[node] = behind;
    next[above] = behind;
    const level = parent < 0 ? 0 : (depth[parent] ?? 0) + 1;
    depth[node] = level;
    if (level >= levels.length) levels.push(node);
  });
  const whole = next[count] ?? 0;
  return { graph, start, end, depth, levels: [...levels, count], whole, scale, isCompared };
}

export const parentOf = ({ graph }: Layout, node: Node): Node => graph.parent[node] ?? NONE;

/** The index range of a depth. */
export function levelOf({ levels }: Layout, depth: number): readonly [first: Node, end: Node] {
  const end = levels.at(-1) ?? 0;
  return [levels[depth] ?? end, levels[depth + 1] ?? end];
}

/** The first node of a depth that ends after a position. */
export function firstBehind(layout: Layout, depth: number, position: number): Node {
  let [low, high] = levelOf(layout, depth);
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((layout.end[middle] ?? 0) <= position) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The node of a depth at a position. */
export function nodeAt(layout: Layout, depth: number, position: number): Node {
  const [, end] = levelOf(layout, depth);
  const match = firstBehind(layout, depth, position);
  return match < end && (layout.start[match] ?? 0) <= position ? match : NONE;
}

/** A node and its ancestors, the outermost first. */
export function pathTo(layout: Layout, node: Node): readonly Node[] {
  const path: Node[] = [];
  for (let at = node; at >= 0; at = parentOf(layout, at)) path.push(at);
  return path.reverse();
}

/** The children of a node; the roots for `NONE`. */
export function childrenOf(layout: Layout, node: Node): readonly Node[] {
  const depth = node < 0 ? 0 : (layout.depth[node] ?? 0) + 1;
  const [, end] = levelOf(layout, depth);
  const match: Node[] = [];
  for (let at = firstChild(layout, node, depth); at < end; at += 1) {
    if (parentOf(layout, at) !== node) break;
    match.push(at);
  }
  return match;
}

/** Binary search: the parents of one depth are in order. */
function firstChild(layout: Layout, node: Node, depth: number): Node {
  let [low, high] = levelOf(layout, depth);
  while (low < high) {
    const middle = (low + high) >> 1;
    if (parentOf(layout, middle) < node) low = middle + 1;
    else high = middle;
  }
  return low;
}

export const isSmaller = ({ graph }: Layout, node: Node): boolean =>
  (graph.merged_count[node] ?? 0) > 0;

export const nameOf = ({ graph }: Layout, node: Node): string =>
  graph.names[graph.name[node] ?? -1] ?? '';

export const kindOf = ({ graph }: Layout, node: Node): string =>
  graph.kinds[graph.name_kinds[graph.name[node] ?? -1] ?? -1]?.id ?? 'rest';

export interface Side {
  readonly total: number;
  readonly own: number;
  readonly calls: number;
}

/** The values of a node, per step if the graph is. */
export interface Figures extends Side {
  readonly before: Side | null;
}

export function figuresOf({ graph, scale, isCompared }: Layout, node: Node): Figures {
  const of = (values: readonly number[], side: 0 | 1): number => (values[node] ?? 0) / scale[side];
  return {
    total: of(graph.total, 0),
    own: of(graph.own, 0),
    calls: of(graph.calls, 0),
    before: isCompared
      ? {
          total: of(graph.before_total, 1),
          own: of(graph.before_own, 1),
          calls: of(graph.before_calls, 1),
        }
      : null,
  };
}

/** The difference as a fraction of the larger side: −1 is gone, 1 is new. */
export function changeOf(layout: Layout, node: Node): number {
  const { total, before } = figuresOf(layout, node);
  const most = Math.max(total, before?.total ?? 0);
  return before && most > 0 ? (total - before.total) / most : 0;
}

/** Matching nodes, and their total weight without counting nested matches twice. */
export interface Matches {
  readonly isMatch: Uint8Array;
  readonly count: number;
  readonly weight: number;
}

export function matchesOf(layout: Layout, test: (name: string) => boolean): Matches {
  const names = layout.graph.names.map((name) => name !== '' && test(name));
  const count = layout.start.length;
  const isMatch = new Uint8Array(count);
  const isCovered = new Uint8Array(count);
  let match = 0;
  let weight = 0;
  for (let node = 0; node < count; node += 1) {
    const parent = parentOf(layout, node);
    const isBelow = parent >= 0 && isCovered[parent] === 1;
    if (names[layout.graph.name[node] ?? -1]) {
      isMatch[node] = 1;
      match += 1;
      if (!isBelow) weight += (layout.end[node] ?? 0) - (layout.start[node] ?? 0);
    }
    isCovered[node] = isBelow || isMatch[node] === 1 ? 1 : 0;
  }
  return { isMatch, count: match, weight };
}

/** The next (1) or previous (-1) match, cyclic; the node itself without a match. */
export function nextMatch({ isMatch }: Matches, from: Node, by: 1 | -1): Node {
  const count = isMatch.length;
  const start = from === NONE && by < 0 ? 0 : from;
  for (let away = 1; away <= count; away += 1) {
    const node = (start + by * away + count * 2) % count;
    if (isMatch[node] === 1) return node;
  }
  return from;
}
