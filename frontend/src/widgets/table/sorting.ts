/**
 * Sorts 200,000 rows within a frame or two: each column is converted to ranks once, then rows are
 * counted into place. Pure.
 */
import type { CellValue } from '../../core/format';

/** Ranks of a column's values: 0 for the least, -1 without a value; equal values share a rank. */
export interface Ranks {
  readonly of: Int32Array;
  readonly count: number;
}

export const NONE = -1;
const DIGITS = 12;
const ZEROS = '0'.repeat(DIGITS);
const NUMBER = /\d+/g;

/** A sort key that ignores case and compares numbers by value. */
export function naturalKey(text: string): string {
  return text
    .toLowerCase()
    .replace(NUMBER, (digits) =>
      digits.length >= DIGITS ? digits : (ZEROS + digits).slice(-DIGITS),
    );
}

/** The index of a value among the sorted distinct values. */
function indexOf(sorted: Float64Array, count: number, value: number): number {
  let low = 0;
  let high = count - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] as number) < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Moves the distinct values of a sorted array to its front, and returns their number. */
function distinct(sorted: Float64Array): number {
  let count = 0;
  for (let at = 0; at < sorted.length; at += 1) {
    const value = sorted[at] as number;
    if (count === 0 || value !== sorted[count - 1]) {
      sorted[count] = value;
      count += 1;
    }
  }
  return count;
}

function ranksOfNumbers(values: readonly CellValue[]): Ranks {
  const numbers = new Float64Array(values.length);
  let filled = 0;
  for (const value of values) {
    if (typeof value !== 'number') continue;
    numbers[filled] = value;
    filled += 1;
  }
  const sorted = numbers.slice(0, filled).sort();
  const count = distinct(sorted);
  const of = new Int32Array(values.length).fill(NONE);
  values.forEach((value, at) => {
    if (typeof value === 'number') of[at] = indexOf(sorted, count, value);
  });
  return { of, count };
}

interface Words {
  /** The index of each row's text among the distinct ones; -1 without a value. */
  readonly codes: Int32Array;
  readonly texts: readonly string[];
}

/** Distinct texts of a column, because names repeat. */
export function wordsOf(values: readonly CellValue[]): Words {
  const codes = new Int32Array(values.length).fill(NONE);
  const indices = new Map<string, number>();
  const texts: string[] = [];
  for (let at = 0; at < values.length; at += 1) {
    const value = values[at];
    if (value === null || value === undefined) continue;
    const text = typeof value === 'string' ? value : String(value);
    let index = indices.get(text);
    if (index === undefined) {
      index = texts.length;
      indices.set(text, index);
      texts.push(text);
    }
    codes[at] = index;
  }
  return { codes, texts };
}

const inOrder = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

function ranksOfWords({ codes, texts }: Words): Ranks {
  const keys = texts.map(naturalKey);
  const order = texts.map((_, at) => at);
  order.sort(
    (a, b) =>
      inOrder(keys[a] as string, keys[b] as string) ||
      inOrder(texts[a] as string, texts[b] as string),
  );
  const rank = new Int32Array(texts.length);
  order.forEach((code, index) => {
    rank[code] = index;
  });
  return {
    of: codes.map((code) => (code === NONE ? NONE : (rank[code] as number))),
    count: texts.length,
  };
}

/** Numbers by value; columns with text by text. */
export function ranksOf(values: readonly CellValue[], words: () => Words): Ranks {
  const hasText = values.some((value) => typeof value === 'string' || typeof value === 'boolean');
  return hasText ? ranksOfWords(words()) : ranksOfNumbers(values);
}

/** The rows in order of their ranks: stable, rows without a value last. */
export function orderOf({ of, count }: Ranks, descending: boolean): Int32Array {
  // One counter per rank, and a last one for rows without a value.
  const index = (rank: number): number =>
    rank === NONE ? count : descending ? count - 1 - rank : rank;
  const next = new Int32Array(count + 2);
  for (const rank of of) next[index(rank) + 1] = (next[index(rank) + 1] as number) + 1;
  for (let at = 1; at < next.length; at += 1) {
    next[at] = (next[at] as number) + (next[at - 1] as number);
  }
  const order = new Int32Array(of.length);
  for (let row = 0; row < of.length; row += 1) {
    const at = index(of[row] as number);
    const to = next[at] as number;
    order[to] = row;
    next[at] = to + 1;
  }
  return order;
}
