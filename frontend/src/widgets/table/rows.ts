/** Rows of a table: filtering, order, identity. Pure. */
import type { Table } from '../../api/types.gen';
import type { CellValue } from '../../core/format';
import type { Condition, Query } from './query';
import { NONE, orderOf, type Ranks, ranksOf, wordsOf } from './sorting';

/** Rows as indices into the columns. */
export type Rows = Int32Array;

export function cellOf(table: Table, column: string, at: number): CellValue {
  return (table.values[column]?.[at] ?? null) as CellValue;
}

/** The key of the whole name, if the first column is shortened. */
export const WHOLE_NAME = 'full_name';

export function wholeName(table: Table, at: number): string {
  const whole = cellOf(table, WHOLE_NAME, at);
  return String(whole ?? cellOf(table, table.columns[0]?.key ?? '', at) ?? '');
}

type Words = ReturnType<typeof wordsOf>;

interface Cached {
  readonly words: Map<string, Words>;
  readonly ranks: Map<string, Ranks>;
  readonly orders: Map<string, Rows>;
  readonly scales: Map<string, number>;
}

/** Values computed once per table. */
const cache = new WeakMap<Table, Cached>();

function cachedOf(table: Table): Cached {
  let entry = cache.get(table);
  if (!entry) {
    entry = { words: new Map(), ranks: new Map(), orders: new Map(), scales: new Map() };
    cache.set(table, entry);
  }
  return entry;
}

function once<T>(store: Map<string, T>, key: string, make: () => T): T {
  let value = store.get(key);
  if (value === undefined) {
    value = make();
    store.set(key, value);
  }
  return value;
}

const valuesOf = (table: Table, key: string): readonly CellValue[] =>
  (table.values[key] ?? []) as readonly CellValue[];

const wordsIn = (table: Table, key: string): Words =>
  once(cachedOf(table).words, key, () => wordsOf(valuesOf(table, key)));

/** All rows in order; without a column in the original order. */
export function orderedRows(table: Table, key: string, descending: boolean): Rows {
  const store = cachedOf(table);
  return once(store.orders, `${descending ? '-' : '+'}${key}`, () => {
    if (key === '') return Int32Array.from({ length: table.row_count }, (_, at) => at);
    const ranks = once(store.ranks, key, () =>
      ranksOf(valuesOf(table, key), () => wordsIn(table, key)),
    );
    return orderOf(ranks, descending);
  });
}

function markWords(
  table: Table,
  condition: Condition & { kind: 'words' },
  misses: Uint8Array,
): void {
  const columns = condition.keys.map((key) => {
    const { codes, texts } = wordsIn(table, key);
    return { codes, hits: texts.map((text) => condition.test(text)) };
  });
  for (let row = 0; row < misses.length; row += 1) {
    if (misses[row] === 1) continue;
    const isHit = columns.some(({ codes, hits }) => hits[codes[row] ?? NONE] === true);
    if (!isHit) misses[row] = 1;
  }
}

function markNumbers(
  table: Table,
  condition: Condition & { kind: 'numbers' },
  misses: Uint8Array,
): void {
  const values = valuesOf(table, condition.key);
  for (let row = 0; row < misses.length; row += 1) {
    const value = values[row];
    if (typeof value !== 'number' || !condition.test(value)) misses[row] = 1;
  }
}

/** The rows that a query excludes; null: none. */
export function missesOf(table: Table, query: Query): Uint8Array | null {
  if (query.kind === 'invalid' || query.conditions.length === 0) return null;
  const misses = new Uint8Array(table.row_count);
  for (const condition of query.conditions) {
    if (condition.kind === 'words') markWords(table, condition, misses);
    else markNumbers(table, condition, misses);
  }
  return misses;
}

export function shownRows(order: Rows, misses: Uint8Array | null): Rows {
  return misses === null ? order : order.filter((row) => misses[row] === 0);
}

/** The value of a full bar in a column of fractions: the largest part of a whole, otherwise 1. */
export function shareScale(table: Table, column: string): number {
  return once(cachedOf(table).scales, column, () => {
    let largest = 0;
    let sum = 0;
    for (const value of valuesOf(table, column)) {
      if (typeof value !== 'number') continue;
      largest = Math.max(largest, value);
      sum += value;
    }
    // Parts of a whole are relative to the largest; others, such as occupancy, to 100 %.
    const areParts = (table.sums ?? []).includes(column) || sum <= 1.001;
    return areParts ? largest : 1;
  });
}

/** The sum of a column over some rows; null without values. */
export function sumOf(table: Table, column: string, rows: Rows): number | null {
  const values = valuesOf(table, column);
  let sum = 0;
  let hasValue = false;
  for (const row of rows) {
    const value = values[row];
    if (typeof value !== 'number') continue;
    sum += value;
    hasValue = true;
  }
  return hasValue ? sum : null;
}

/** A 53-bit hash of a text, to identify a row. */
function fingerprint(text: string): string {
  let [low, high] = [0x9dc5, 0x1c9d];
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    low = Math.imul(low ^ code, 0x01000193);
    high = Math.imul(high ^ (code + at), 0x85ebca6b);
  }
  return ((low >>> 0) * 2 ** 21 + (high >>> 11)).toString(36);
}

/** Columns that identify a row; by default its event, else all its texts. */
export function identityOf(
  table: Table,
  requested: readonly string[] | undefined,
): readonly string[] {
  const there = (requested ?? ['event']).filter((key) => table.values[key] !== undefined);
  if (there.length > 0) return there;
  return table.columns
    .filter((column) => column.unit === 'text' || column.unit === 'code')
    .map((column) => column.key);
}

/** The name in the URL of a row with these values. */
export const nameOfRow = (values: readonly CellValue[]): string =>
  fingerprint(values.map((value) => String(value ?? '')).join('\u0000'));

export const rowName = (table: Table, identity: readonly string[], at: number): string =>
  nameOfRow(identity.map((key) => cellOf(table, key, at)));

/** The row with a name; null if there is none. */
export function rowNamed(table: Table, identity: readonly string[], name: string): number | null {
  for (let at = 0; at < table.row_count; at += 1) {
    if (rowName(table, identity, at) === name) return at;
  }
  return null;
}
