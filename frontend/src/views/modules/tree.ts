/** The tree of modules as rows: open modules, order, search. Pure. */
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
  // Parents come before their children.
  parent.forEach((above, at) => {
    depth[at] = above < 0 ? 0 : (depth[above] ?? 0) + 1;
    if (above < 0) roots.push(at);
    else children[above]?.push(at);
  });
  return { parent, children, roots, depth };
}

export interface Openness {
  /** Modules above this depth are open by default. */
  readonly depth: number;
  /** Modules in the opposite state. */
  readonly flipped: ReadonlySet<number>;
}

export const isOpen = (tree: Tree, open: Openness, at: number): boolean =>
  (tree.depth[at] ?? 0) < open.depth !== open.flipped.has(at);

/** Parses `0.12.45`, the rows that the user opened or closed. */
export const flippedOf = (text: string | undefined): ReadonlySet<number> =>
  new Set(
    (text ?? '')
      .split('.')
      .filter((part) => /^\d{1,9}$/.test(part))
      .map(Number),
  );

export const flippedText = (flipped: ReadonlySet<number>): string =>
  [...flipped].sort((a, b) => a - b).join('.');

/** The flipped modules once a module is open or closed, if `deep` with all below it. */
export function withToggled(
  tree: Tree,
  open: Openness,
  { at, opens, deep }: { readonly at: number; readonly opens: boolean; readonly deep: boolean },
): ReadonlySet<number> {
  const flipped = new Set(open.flipped);
  const pending = [at];
  while (pending.length > 0) {
    const next = pending.pop() ?? 0;
    const isDefaultOpen = (tree.depth[next] ?? 0) < open.depth;
    if (isDefaultOpen === opens) flipped.delete(next);
    else flipped.add(next);
    if (deep) pending.push(...(tree.children[next] ?? []));
  }
  return flipped;
}

/** The matching modules, and the shown ones with all callers; null without a search. */
export function searchTree(
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

/** Sorts siblings; without a sort they stay in the order of their first calls. */
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

/** The shown rows in order. */
export function rowsOf({ tree, roots, open, inOrder, shown }: RowsOptions): number[] {
  const result: number[] = [];
  const filtered = (rows: readonly number[]): readonly number[] =>
    inOrder(shown ? rows.filter((at) => shown.has(at)) : rows);
  const pending = filtered(roots).toReversed();
  while (pending.length > 0) {
    const at = pending.pop() ?? 0;
    result.push(at);
    if (shown || open(at)) pending.push(...filtered(tree.children[at] ?? []).toReversed());
  }
  return result;
}

/** A module and its callers, the outermost first. */
export function pathTo(tree: Tree, at: number): number[] {
  const path: number[] = [];
  for (let above = at; above >= 0; above = tree.parent[above] ?? -1) path.push(above);
  return path.reverse();
}

const ROWS_OF_A_SCREEN = 60;

/** The depth to which all open modules fit about one screen. */
export function defaultDepth(tree: Tree): number {
  const counts: number[] = [];
  for (const depth of tree.depth) counts[depth] = (counts[depth] ?? 0) + 1;
  let rows = counts[0] ?? 0;
  let depth = 0;
  while (depth + 1 < counts.length && rows + (counts[depth + 1] ?? 0) <= ROWS_OF_A_SCREEN) {
    depth += 1;
    rows += counts[depth] ?? 0;
  }
  return depth;
}
