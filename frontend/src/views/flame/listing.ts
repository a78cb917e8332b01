/** The functions of a flame graph as rows: their figures as they are read, in order, those that match. Pure. */
import type { FlameFunctions } from '../../api/types.gen';
import type { Sort } from '../../state/location';
import type { Side } from './layout';

export interface FunctionRow extends Side {
  readonly name: string;
  readonly kind: string;
  /** Of its own value, against the baseline; 0 where nothing is compared. */
  readonly change: number;
  readonly before: Side | null;
}

export const isComparedIn = (said: FlameFunctions): boolean =>
  said.before_own.length > 0 || said.before_whole > 0;

/** What values of a side are divided by. */
export const stepsIn = (said: FlameFunctions, steps: number): number =>
  said.is_per_step ? Math.max(1, steps) : 1;

export function rowsOf(said: FlameFunctions): readonly FunctionRow[] {
  const scale = stepsIn(said, said.steps);
  const scaleBefore = stepsIn(said, said.before_steps);
  const isCompared = isComparedIn(said);
  return said.names.map((name, at) => {
    const own = (said.own[at] ?? 0) / scale;
    const ownBefore = (said.before_own[at] ?? 0) / scaleBefore;
    const before = {
      own: ownBefore,
      total: (said.before_total[at] ?? 0) / scaleBefore,
      calls: (said.before_calls[at] ?? 0) / scaleBefore,
    };
    return {
      name,
      kind: said.kinds[said.name_kinds[at] ?? -1]?.id ?? 'rest',
      own,
      total: (said.total[at] ?? 0) / scale,
      calls: (said.calls[at] ?? 0) / scale,
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
  const key = KEYS.find((each) => each === sort?.key);
  if (!key || !sort) return { key: isCompared ? 'change' : 'own', descending: true };
  return { key, descending: sort.descending };
}

/** Changes are ordered by their size, whatever their sign. */
const sizeOf = (row: FunctionRow, key: Exclude<SortKey, 'name'>): number =>
  key === 'change' ? Math.abs(row.change) : row[key];

export function sorted(rows: readonly FunctionRow[], order: Order): readonly FunctionRow[] {
  const { key, descending } = order;
  const sign = descending ? -1 : 1;
  return [...rows].sort((a, b) =>
    key === 'name' ? sign * a.name.localeCompare(b.name) : sign * (sizeOf(a, key) - sizeOf(b, key)),
  );
}
