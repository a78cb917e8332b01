/** The tree of modules as rows: which are open, in which order, and which fit the search. Pure. */
import type { Modules } from '../../api/types.gen';
import type { CellValue } from '../../core/format';
import type { Sort } from '../../state/location';
import { cellOf } from '../../widgets/table/rows';

export interface Tree {
  readonly parent: readonly number[];
  readonly children: readonly (readonly number[])[];
  readonly roots: readonly number[];
  readonly depth: readonly number[];
}

export function treeOf(table: Modules): Tree {
  const { parent } = table;
  const children: number[][] = parent.map(() => []);
  const depth: number[] = [];
  const roots: number[] = [];
  // A parent's row is above its children's.
  parent.forEach((above, at) => {
    depth[at] = above < 0 ? 0 : (depth[above] ?? 0) + 1;
    if (above < 0) roots.push(at);
    else children[above]?.push(at);
  });
  return { parent, children, roots, depth };
}

export interface Openness {
  /** Modules above this depth are open, ... */
  readonly depth: number;
  /** ... but for these, which are the other way. */
  readonly flipped: ReadonlySet<number>;
}

export const isOpen = (tree: Tree, open: Openness, at: number): boolean =>
  (tree.depth[at] ?? 0) < open.depth !== open.flipped.has(at);

/** `0.12.45`: the rows that were opened or closed by hand. */
export const flippedOf = (text: string | undefined): ReadonlySet<number> =>
  new Set(
    (text ?? '')
      .split('.')
      .filter((part) => /^\d{1,9}$/.test(part))
      .map(Number),
  );

export const flippedText = (flipped: ReadonlySet<number>): string =>
  [...flipped].sort((a, b) => a - b).join('.');

/** The openness with a module, and where wanted all below it, open or closed. */
export function turned(
  tree: Tree,
  open: Openness,
  { at, opens, deep }: { readonly at: number; readonly opens: boolean; readonly deep: boolean },
): ReadonlySet<number> {
  const flipped = new Set(open.flipped);
  const waiting = [at];
  while (waiting.length > 0) {
    const next = waiting.pop() ?? 0;
    const usual = (tree.depth[next] ?? 0) < open.depth;
    if (usual === opens) flipped.delete(next);
    else flipped.add(next);
    if (deep) waiting.push(...(tree.children[next] ?? []));
  }
  return flipped;
}

/** The modules that fit, and all that lead to them; null: nothing is searched. */
export function foundBy(
  tree: Tree,
  fits: ((at: number) => boolean) | null,
): { readonly hits: ReadonlySet<number>; readonly shown: ReadonlySet<number> } | null {
  if (!fits) return null;
  const hits = new Set<number>();
  const shown = new Set<number>();
  for (let at = 0; at < tree.parent.length; at += 1) {
    if (!fits(at)) continue;
    hits.add(at);
    for (let above = at; above >= 0 && !shown.has(above); above = tree.parent[above] ?? -1) {
      shown.add(above);
    }
  }
  return { hits, shown };
}

function compared(a: CellValue, b: CellValue, descending: boolean): number {
  if (a === null || a === undefined) return b === null || b === undefined ? 0 : 1;
  if (b === null || b === undefined) return -1;
  const order =
    typeof a === 'number' && typeof b === 'number'
      ? a - b
      : String(a).localeCompare(String(b), 'en', { numeric: true });
  return descending ? -order : order;
}

/** Siblings in order; without one, as they were first called. */
export function siblingsInOrder(
  table: Modules,
  sort: Sort | null,
): (rows: readonly number[]) => readonly number[] {
  if (!sort) return (rows) => rows;
  return (rows) =>
    rows.toSorted(
      (a, b) =>
        compared(cellOf(table, sort.key, a), cellOf(table, sort.key, b), sort.descending) || a - b,
    );
}

interface RowsOptions {
  readonly tree: Tree;
  readonly roots: readonly number[];
  readonly open: (at: number) => boolean;
  readonly inOrder: (rows: readonly number[]) => readonly number[];
  readonly shown: ReadonlySet<number> | null;
}

/** The rows in sight, each followed by what is open below it. */
export function rowsOf({ tree, roots, open, inOrder, shown }: RowsOptions): number[] {
  const found: number[] = [];
  const chosen = (rows: readonly number[]): readonly number[] =>
    inOrder(shown ? rows.filter((at) => shown.has(at)) : rows);
  const waiting = chosen(roots).toReversed();
  while (waiting.length > 0) {
    const at = waiting.pop() ?? 0;
    found.push(at);
    if (shown || open(at)) waiting.push(...chosen(tree.children[at] ?? []).toReversed());
  }
  return found;
}

/** A module and those that called it, outermost first. */
export function pathTo(tree: Tree, at: number): number[] {
  const path: number[] = [];
  for (let above = at; above >= 0; above = tree.parent[above] ?? -1) path.push(above);
  return path.reverse();
}
