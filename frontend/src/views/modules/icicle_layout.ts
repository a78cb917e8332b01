/** Where the modules stand in the icicle: as wide as what they cost, below what calls them. Pure. */
import type { Tree } from './tree';

export interface Box {
  readonly at: number;
  readonly left: number;
  readonly width: number;
  readonly row: number;
}

const LEAST_WIDTH = 0.0004;

/** Boxes of a width from 0 to 1; what is too narrow to be seen is left out, with all below it. */
export function boxesOf(
  tree: Tree,
  roots: readonly number[],
  value: (at: number) => number,
): Box[] {
  const total = roots.reduce((sum, at) => sum + value(at), 0);
  if (total <= 0) return [];
  const found: Box[] = [];
  const waiting: Box[] = [];
  const place = (rows: readonly number[], left: number, row: number): void => {
    let from = left;
    for (const at of rows.toSorted((a, b) => value(b) - value(a) || a - b)) {
      const width = value(at) / total;
      if (width >= LEAST_WIDTH) waiting.push({ at, left: from, width, row });
      from += width;
    }
  };
  place(roots, 0, 0);
  for (let box = waiting.pop(); box; box = waiting.pop()) {
    found.push(box);
    place(tree.children[box.at] ?? [], box.left, box.row + 1);
  }
  return found;
}

/** The box at a place, whose width is counted from 0 to 1. */
export const boxAt = (boxes: readonly Box[], x: number, row: number): Box | undefined =>
  boxes.find((box) => box.row === row && x >= box.left && x < box.left + box.width);
