import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Modules } from '../../api/types.gen';
import { boxAt, boxesOf } from './icicle';
import {
  flippedOf,
  flippedText,
  isOpen,
  pathTo,
  rowsOf,
  searchTree,
  siblingsInOrder,
  treeOf,
  withToggled,
} from './tree';

/** Net(Linear_0, Block(ReLU, Linear_1)), Loss. */
const table = {
  parent: [-1, 0, 0, 2, 2, -1],
  values: {
    module: ['Net', 'Linear_0', 'Block', 'ReLU', 'Linear_1', 'Loss'],
    cost: [60, 10, 40, 5, 30, null],
  },
} as unknown as Modules;
const tree = treeOf(table);
const asCalled = siblingsInOrder(table, null);
const shut = { depth: 0, flipped: new Set<number>() };

const rows = (open: Parameters<typeof isOpen>[1], inOrder = asCalled): number[] =>
  rowsOf({ tree, roots: tree.roots, open: (at) => isOpen(tree, open, at), inOrder, shown: null });

describe('rows of the tree', () => {
  it('are the expanded ones, each below its caller', () => {
    expect(rows(shut)).toEqual([0, 5]);
    expect(rows({ ...shut, depth: 1 })).toEqual([0, 1, 2, 5]);
    expect(rows({ ...shut, depth: 9 })).toEqual([0, 1, 2, 3, 4, 5]);
  });

  it('are sorted among siblings, with missing values last', () => {
    const by = (descending: boolean) => siblingsInOrder(table, { key: 'cost', descending });
    expect(rows({ ...shut, depth: 9 }, by(true))).toEqual([0, 2, 4, 3, 1, 5]);
    expect(rows({ ...shut, depth: 9 }, by(false))).toEqual([0, 1, 2, 3, 4, 5]);
  });

  it('are expanded and collapsed one by one, or with all descendants', () => {
    const one = withToggled(tree, shut, { at: 0, opens: true, deep: false });
    expect(rows({ ...shut, flipped: one })).toEqual([0, 1, 2, 5]);
    const all = withToggled(tree, shut, { at: 0, opens: true, deep: true });
    expect(rows({ ...shut, flipped: all })).toEqual([0, 1, 2, 3, 4, 5]);
    const closed = withToggled(
      tree,
      { depth: 9, flipped: new Set() },
      { at: 2, opens: false, deep: false },
    );
    expect(rows({ depth: 9, flipped: closed })).toEqual([0, 1, 2, 5]);
  });

  it('are search results with their ancestors, even if collapsed', () => {
    const names = table.values.module as string[];
    const matches = searchTree(tree, (at) => names[at]?.startsWith('Linear') ?? false);
    expect(matches?.hits).toEqual(new Set([1, 4]));
    const shown = rowsOf({
      tree,
      roots: tree.roots,
      open: () => false,
      inOrder: asCalled,
      shown: matches?.shown ?? null,
    });
    expect(shown).toEqual([0, 1, 2, 4]);
  });

  it('return the path of a module', () => {
    expect(pathTo(tree, 4)).toEqual([0, 2, 4]);
  });
});

it('the expanded rows round-trip through the URL', () => {
  fc.assert(
    fc.property(fc.uniqueArray(fc.nat(100_000)), (numbers) => {
      expect(flippedOf(flippedText(new Set(numbers)))).toEqual(new Set(numbers));
    }),
  );
  expect(flippedOf('1.x.-3..2')).toEqual(new Set([1, 2]));
  expect(flippedOf(undefined)).toEqual(new Set());
});

describe('the icicle', () => {
  const costs = table.values.cost as (number | null)[];
  const boxes = boxesOf(tree, tree.roots, (at) => costs[at] ?? 0);

  it('gives each module its share of the width below its caller, the widest first', () => {
    const shown = boxes.map(({ at, left, width, row }) => [at, row, left * 60, width * 60]);
    expect(shown.toSorted((a, b) => (a[0] ?? 0) - (b[0] ?? 0))).toEqual([
      [0, 0, 0, 60],
      [1, 1, 40, 10],
      [2, 1, 0, 40],
      [3, 2, 30, 5],
      [4, 2, 0, 30],
    ]);
  });

  it('finds a module by position', () => {
    expect(boxAt(boxes, 45 / 60, 1)?.at).toBe(1);
    expect(boxAt(boxes, 55 / 60, 1)).toBeUndefined();
  });

  it('is empty if all values are zero', () => {
    expect(boxesOf(tree, tree.roots, () => 0)).toEqual([]);
  });
});
