/**
 * A flame graph's answer as places: nodes come by depth, those of one parent together, so one pass
 * lays them out, and those of one depth stand in the order of their places. Pure.
 */
import type { FlameGraph } from '../../api/types.gen';

/** A node by its place in the answer's columns; -1 is none. */
export type Node = number;
export const NONE: Node = -1;

export interface Layout {
  readonly graph: FlameGraph;
  /** Where each node begins and ends, in weight: of both sides together where two are compared. */
  readonly start: Float64Array;
  readonly end: Float64Array;
  readonly depth: Int32Array;
  /** Where each depth begins in the columns; one more than there are depths. */
  readonly levels: readonly number[];
  readonly whole: number;
  /** What the values of each side are divided by to be read: steps, or 1. */
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
  /** Where the next child of each node begins; behind them, where the next at the top does. */
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

/** The nodes of a depth, by where they begin in the columns. */
export function levelOf({ levels }: Layout, depth: number): readonly [first: Node, end: Node] {
  const end = levels.at(-1) ?? 0;
  return [levels[depth] ?? end, levels[depth + 1] ?? end];
}

/** The first node of a depth that ends behind a place. */
export function firstBehind(layout: Layout, depth: number, place: number): Node {
  let [low, high] = levelOf(layout, depth);
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((layout.end[middle] ?? 0) <= place) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The node at a place of a depth. */
export function nodeAt(layout: Layout, depth: number, place: number): Node {
  const [, end] = levelOf(layout, depth);
  const found = firstBehind(layout, depth, place);
  return found < end && (layout.start[found] ?? 0) <= place ? found : NONE;
}

/** A node and all above it, the outermost first. */
export function pathTo(layout: Layout, node: Node): readonly Node[] {
  const path: Node[] = [];
  for (let at = node; at >= 0; at = parentOf(layout, at)) path.push(at);
  return path.reverse();
}

/** The nodes right below one; those at the top for none. */
export function childrenOf(layout: Layout, node: Node): readonly Node[] {
  const depth = node < 0 ? 0 : (layout.depth[node] ?? 0) + 1;
  const [, end] = levelOf(layout, depth);
  const found: Node[] = [];
  for (let at = firstChild(layout, node, depth); at < end; at += 1) {
    if (parentOf(layout, at) !== node) break;
    found.push(at);
  }
  return found;
}

/** Parents of one depth come in their order, so children are found by halving. */
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

/** What a node says, each side as it is read: per step where values are. */
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

/** From −1, gone, to 1, new: the difference as a share of the larger side. */
export function changeOf(layout: Layout, node: Node): number {
  const { total, before } = figuresOf(layout, node);
  const most = Math.max(total, before?.total ?? 0);
  return before && most > 0 ? (total - before.total) / most : 0;
}

/** Which nodes' names match, and what they and all below them are together, no weight counted twice. */
export interface Matches {
  readonly isMatch: Uint8Array;
  readonly count: number;
  readonly weight: number;
}

export function matchesOf(layout: Layout, test: (name: string) => boolean): Matches {
  const names = layout.graph.names.map((name) => name !== '' && test(name));
  const count = layout.start.length;
  const isMatch = new Uint8Array(count);
  const isWithin = new Uint8Array(count);
  let found = 0;
  let weight = 0;
  for (let node = 0; node < count; node += 1) {
    const parent = parentOf(layout, node);
    const isBelow = parent >= 0 && isWithin[parent] === 1;
    if (names[layout.graph.name[node] ?? -1]) {
      isMatch[node] = 1;
      found += 1;
      if (!isBelow) weight += (layout.end[node] ?? 0) - (layout.start[node] ?? 0);
    }
    isWithin[node] = isBelow || isMatch[node] === 1 ? 1 : 0;
  }
  return { isMatch, count: found, weight };
}

/** The next match behind a node, or the one before it, around the end; the same where there is none. */
export function nextMatch({ isMatch }: Matches, from: Node, by: 1 | -1): Node {
  const count = isMatch.length;
  const start = from === NONE && by < 0 ? 0 : from;
  for (let away = 1; away <= count; away += 1) {
    const node = (start + by * away + count * 2) % count;
    if (isMatch[node] === 1) return node;
  }
  return from;
}
