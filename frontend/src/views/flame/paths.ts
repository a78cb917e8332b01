/** Frames by the path of names that leads to them, short enough for a link: CRC-32 in base 36, joined by dots. Pure. */
import { childrenOf, isSmaller, type Layout, NONE, type Node, nameOf, pathTo } from './layout';

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

export const keyOf = (name: string): string => crc32(encoder.encode(name)).toString(36);

/** A link that is longer than this is cut: it leads to a frame further out. */
const MOST_KEYS = 400;

export const pathKeys = (layout: Layout, node: Node): string =>
  pathTo(layout, node)
    .slice(0, MOST_KEYS)
    .map((each) => keyOf(nameOf(layout, each)))
    .join('.');

/** The node that a path leads to, as far as there is such a one. */
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
