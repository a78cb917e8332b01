/** Where the arrow keys lead from a frame, and what fills the picture. Pure. */
import type { Range } from '../../canvas/viewport';
import { childrenOf, type Layout, levelOf, NONE, type Node, parentOf } from './layout';

/** The part of the weight that a frame takes; all of it for none. */
export function rangeOf(layout: Layout, root: Node): Range {
  if (root === NONE) return { start: 0, end: Math.max(layout.whole, Number.MIN_VALUE) };
  return { start: layout.start[root] ?? 0, end: layout.end[root] ?? 0 };
}

export type Way = 'out' | 'in' | 'before' | 'after';

export const KEYS: Readonly<Record<string, Way>> = {
  ArrowUp: 'out',
  ArrowDown: 'in',
  ArrowLeft: 'before',
  ArrowRight: 'after',
};

function beside(layout: Layout, from: Node, by: number, root: Node): Node {
  const next = from + by;
  const [first, end] = levelOf(layout, layout.depth[from] ?? 0);
  if (next < first || next >= end) return from;
  const { start, end: behind } = rangeOf(layout, root);
  const isSeen = (layout.start[next] ?? 0) < behind && (layout.end[next] ?? 0) > start;
  return isSeen ? next : from;
}

/** The next frame on a way, of those in the picture; the same where there is none. */
export function moved(layout: Layout, from: Node, way: Way, root: Node): Node {
  if (from === NONE) return root === NONE ? (childrenOf(layout, NONE)[0] ?? NONE) : root;
  if (way === 'out') return parentOf(layout, from) < 0 ? from : parentOf(layout, from);
  if (way === 'in') return childrenOf(layout, from)[0] ?? from;
  return beside(layout, from, way === 'after' ? 1 : -1, root);
}
