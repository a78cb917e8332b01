/** From the API's columns to the rows that a table shows: which, and in which order. Pure. */
import type { Table } from '../../api/types.gen';
import type { CellValue } from '../../core/format';
import type { Condition, Query } from './query';
import { NONE, orderOf, type Ranks, ranksOf, wordsOf } from './sorting';

/** Rows by their places in the columns. */
export type Rows = Int32Array;

export function cellOf(table: Table, column: string, at: number): CellValue {
  return (table.values[column]?.[at] ?? null) as CellValue;
}

/** Where the API sends a short name to show and, beside it, the whole one. */
export const WHOLE_NAME = 'full_name';

/** A row's name, whole. */
export function wholeName(table: Table, at: number): string {
  const whole = cellOf(table, WHOLE_NAME, at);
  return String(whole ?? cellOf(table, table.columns[0]?.key ?? '', at) ?? '');
}

type Words = ReturnType<typeof wordsOf>;

interface Kept {
  readonly words: Map<string, Words>;
  readonly ranks: Map<string, Ranks>;
  readonly orders: Map<string, Rows>;
  readonly scales: Map<string, number>;
}

/** What was worked out of a table, for as long as there is that table. */
const kept = new WeakMap<Table, Kept>();

function keptOf(table: Table): Kept {
  let found = kept.get(table);
  if (!found) {
    found = { words: new Map(), ranks: new Map(), orders: new Map(), scales: new Map() };
    kept.set(table, found);
  }
  return found;
}

function once<T>(known: Map<string, T>, key: string, make: () => T): T {
  let value = known.get(key);
  if (value === undefined) {
    value = make();
    known.set(key, value);
  }
  return value;
}

const valuesOf = (table: Table, key: string): readonly CellValue[] =>
  (table.values[key] ?? []) as readonly CellValue[];

const wordsIn = (table: Table, key: string): Words =>
  once(keptOf(table).words, key, () => wordsOf(valuesOf(table, key)));

/** All rows in an order; without a column, as they come. */
export function orderedRows(table: Table, key: string, descending: boolean): Rows {
  const known = keptOf(table);
  return once(known.orders, `${descending ? '-' : '+'}${key}`, () => {
    if (key === '') return Int32Array.from({ length: table.row_count }, (_, at) => at);
    const ranks = once(known.ranks, key, () =>
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

/** Which rows a query leaves out; null: none. */
export function missesOf(table: Table, query: Query): Uint8Array | null {
  if (query.kind === 'invalid' || query.conditions.length === 0) return null;
  const misses = new Uint8Array(table.row_count);
  for (const condition of query.conditions) {
    if (condition.kind === 'words') markWords(table, condition, misses);
    else markNumbers(table, condition, misses);
  }
  return misses;
}

/** The rows of an order that are not left out. */
export function shownRows(order: Rows, misses: Uint8Array | null): Rows {
  return misses === null ? order : order.filter((row) => misses[row] === 0);
}

/** What a full bar of a share column stands for: the largest part of a whole, else all of one. */
export function shareScale(table: Table, column: string): number {
  return once(keptOf(table).scales, column, () => {
    let largest = 0;
    let sum = 0;
    for (const value of valuesOf(table, column)) {
      if (typeof value !== 'number') continue;
      largest = Math.max(largest, value);
      sum += value;
    }
    // Parts of a whole are drawn against the largest; others, such as occupancy, each against all of it.
    const areParts = (table.sums ?? []).includes(column) || sum <= 1.001;
    return areParts ? largest : 1;
  });
}

/** The sum of a column over some rows; null where none of them has a value. */
export function sumOf(table: Table, column: string, rows: Rows): number | null {
  const values = valuesOf(table, column);
  let sum = 0;
  let isKnown = false;
  for (const row of rows) {
    const value = values[row];
    if (typeof value !== 'number') continue;
    sum += value;
    isKnown = true;
  }
  return isKnown ? sum : null;
}

/** 53 bits of a text, in few letters: enough to find a row again by. */
function fingerprint(text: string): string {
  let [low, high] = [0x9dc5, 0x1c9d];
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    low = Math.imul(low ^ code, 0x01000193);
    high = Math.imul(high ^ (code + at), 0x85ebca6b);
  }
  return ((low >>> 0) * 2 ** 21 + (high >>> 11)).toString(36);
}

/** Columns that together name a row; where nothing else is said, its event, else all its texts. */
export function identityOf(table: Table, wanted: readonly string[] | undefined): readonly string[] {
  const there = (wanted ?? ['event']).filter((key) => table.values[key] !== undefined);
  if (there.length > 0) return there;
  return table.columns
    .filter((column) => column.unit === 'text' || column.unit === 'code')
    .map((column) => column.key);
}

/** How the URL names the row with these values in the columns that name it. */
export const nameOfRow = (values: readonly CellValue[]): string =>
  fingerprint(values.map((value) => String(value ?? '')).join('\u0000'));

/** How the URL names a row. */
export const rowName = (table: Table, identity: readonly string[], at: number): string =>
  nameOfRow(identity.map((key) => cellOf(table, key, at)));

/** The row that the URL names; null where there is none. */
export function rowNamed(table: Table, identity: readonly string[], name: string): number | null {
  for (let at = 0; at < table.row_count; at += 1) {
    if (rowName(table, identity, at) === name) return at;
  }
  return null;
}
