/** The functions of a flame graph as sorted rows. Pure. */
import type { FlameFunctions } from '../../api/types.gen';
import type { Sort } from '../../state/location';
import type { Side } from './layout';

export interface FunctionRow extends Side {
  readonly name: string;
  readonly kind: string;
  /** Change of the self value from the baseline; 0 without one. */
  readonly change: number;
  readonly before: Side | null;
}

export const isComparedIn = (list: FlameFunctions): boolean =>
  list.before_own.length > 0 || list.before_whole > 0;

/** The divisor of the values of a side. */
export const stepsIn = (list: FlameFunctions, steps: number): number =>
  list.is_per_step ? Math.max(1, steps) : 1;

export function rowsOf(list: FlameFunctions): readonly FunctionRow[] {
  const scale = stepsIn(list, list.steps);
  const scaleBefore = stepsIn(list, list.before_steps);
  const isCompared = isComparedIn(list);
  return list.names.map((name, at) => {
    const own = (list.own[at] ?? 0) / scale;
    const ownBefore = (list.before_own[at] ?? 0) / scaleBefore;
    const before = {
      own: ownBefore,
      total: (list.before_total[at] ?? 0) / scaleBefore,
      calls: (list.before_calls[at] ?? 0) / scaleBefore,
    };
    return {
      name,
      kind: list.kinds[list.name_kinds[at] ?? -1]?.id ?? 'rest',
      own,
      total: (list.total[at] ?? 0) / scale,
      calls: (list.calls[at] ?? 0) / scale,
      change: isCompared ? own - ownBefore : 0,
      before: isCompared ? before : null,
    };
  });
}

export type SortKey = 'name' | 'own' | 'total' | 'calls' | 'change';
const KEYS: readonly SortKey[] = ['name', 'own', 'total', 'calls', 'change'];

export interface Order {
  readonly key: SortKey;
  readonly descending: boolean;
}

export function orderFrom(sort: Sort | null, isCompared: boolean): Order {
  const key = KEYS.find((other) => other === sort?.key);
  if (!key || !sort) return { key: isCompared ? 'change' : 'own', descending: true };
  return { key, descending: sort.descending };
}

/** Changes are ordered by magnitude. */
const sizeOf = (row: FunctionRow, key: Exclude<SortKey, 'name'>): number =>
  key === 'change' ? Math.abs(row.change) : row[key];

export function sorted(rows: readonly FunctionRow[], order: Order): readonly FunctionRow[] {
  const { key, descending } = order;
  const sign = descending ? -1 : 1;
  return [...rows].sort((a, b) =>
    key === 'name' ? sign * a.name.localeCompare(b.name) : sign * (sizeOf(a, key) - sizeOf(b, key)),
  );
}
