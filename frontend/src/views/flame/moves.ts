/** Moves between frames by arrow key, and the paths of frames in links. Pure. */
import type { Range } from '../../canvas/viewport';
import {
  childrenOf,
  isSmaller,
  type Layout,
  levelOf,
  NONE,
  type Node,
  nameOf,
  parentOf,
  pathTo,
} from './layout';

/** The range of a frame in weight; the whole range for `NONE`. */
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

function neighbour(layout: Layout, from: Node, by: number, root: Node): Node {
  const next = from + by;
  const [first, end] = levelOf(layout, layout.depth[from] ?? 0);
  if (next < first || next >= end) return from;
  const { start, end: behind } = rangeOf(layout, root);
  const isSeen = (layout.start[next] ?? 0) < behind && (layout.end[next] ?? 0) > start;
  return isSeen ? next : from;
}

/** The next frame in a direction within the zoomed frame; the frame itself without one. */
export function moved(layout: Layout, from: Node, way: Way, root: Node): Node {
  if (from === NONE) return root === NONE ? (childrenOf(layout, NONE)[0] ?? NONE) : root;
  if (way === 'out') return parentOf(layout, from) < 0 ? from : parentOf(layout, from);
  if (way === 'in') return childrenOf(layout, from)[0] ?? from;
  return neighbour(layout, from, way === 'after' ? 1 : -1, root);
}

const POLYNOMIAL = 0xedb88320;
const encoder = new TextEncoder();

function crc32(bytes: Uint8Array): number {
  let value = 0xffffffff;
  for (const byte of bytes) {
    value ^= byte;
    for (let bit = 0; bit < 8; bit += 1) value = (value >>> 1) ^ (value & 1 ? POLYNOMIAL : 0);
  }
  return (value ^ 0xffffffff) >>> 0;
}

/** A name as CRC-32 in base 36: links hold paths of these, joined by dots. */
export const keyOf = (name: string): string => crc32(encoder.encode(name)).toString(36);

/** Longer paths are cut, and lead to an outer frame. */
const MOST_KEYS = 400;

export const pathKeys = (layout: Layout, node: Node): string =>
  pathTo(layout, node)
    .slice(0, MOST_KEYS)
    .map((ancestor) => keyOf(nameOf(layout, ancestor)))
    .join('.');

/** The node at the end of a path, as far as the path exists. */
export function nodeOf(layout: Layout, path: string): Node {
  let at: Node = NONE;
  for (const key of path.split('.').filter(Boolean)) {
    const next = childrenOf(layout, at).find(
      (child) => !isSmaller(layout, child) && keyOf(nameOf(layout, child)) === key,
    );
    if (next === undefined) break;
    at = next;
  }
  return at;
}
