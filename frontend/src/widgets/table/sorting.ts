/**
 * Orders 200,000 rows within a frame or two: every column becomes ranks once, whole numbers that say which value is
 * above which, and by those rows are put in place without comparing them. Pure.
 */
import type { CellValue } from '../../core/format';

/** A column's values by rank: -1 where there is none, else 0 for the least. Equal values have one rank. */
export interface Ranks {
  readonly of: Int32Array;
  readonly count: number;
}

export const NONE = -1;
const DIGITS = 12;
const ZEROS = '0'.repeat(DIGITS);
const NUMBER = /\d+/g;

/** Text by which names are set in order: any case, and numbers in them by their value. */
export function naturalKey(text: string): string {
  return text
    .toLowerCase()
    .replace(NUMBER, (digits) =>
      digits.length >= DIGITS ? digits : (ZEROS + digits).slice(-DIGITS),
    );
}

/** The place of each value among the distinct ones, which are in order. */
function placeOf(sorted: Float64Array, count: number, value: number): number {
  let low = 0;
  let high = count - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] as number) < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Moves the distinct values of a sorted array to its beginning, and says how many there are. */
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
  let known = 0;
  for (const value of values) {
    if (typeof value !== 'number') continue;
    numbers[known] = value;
    known += 1;
  }
  const sorted = numbers.slice(0, known).sort();
  const count = distinct(sorted);
  const of = new Int32Array(values.length).fill(NONE);
  values.forEach((value, at) => {
    if (typeof value === 'number') of[at] = placeOf(sorted, count, value);
  });
  return { of, count };
}

interface Words {
  /** Each row's text among the distinct ones; -1 where there is none. */
  readonly codes: Int32Array;
  readonly texts: readonly string[];
}

/** Each distinct text once: names repeat, so that what is done to texts is done to few. */
export function wordsOf(values: readonly CellValue[]): Words {
  const codes = new Int32Array(values.length).fill(NONE);
  const places = new Map<string, number>();
  const texts: string[] = [];
  for (let at = 0; at < values.length; at += 1) {
    const value = values[at];
    if (value === null || value === undefined) continue;
    const text = typeof value === 'string' ? value : String(value);
    let place = places.get(text);
    if (place === undefined) {
      place = texts.length;
      places.set(text, place);
      texts.push(text);
    }
    codes[at] = place;
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
  order.forEach((code, place) => {
    rank[code] = place;
  });
  return {
    of: codes.map((code) => (code === NONE ? NONE : (rank[code] as number))),
    count: texts.length,
  };
}

/** Numbers by value; all else by text, where a column holds any. */
export function ranksOf(values: readonly CellValue[], words: () => Words): Ranks {
  const hasText = values.some((value) => typeof value === 'string' || typeof value === 'boolean');
  return hasText ? ranksOfWords(words()) : ranksOfNumbers(values);
}

/** The rows in order of their ranks. Equal ones stay as they were, and what has none is last, whichever way. */
export function orderOf({ of, count }: Ranks, descending: boolean): Int32Array {
  // One place a rank, and a last one for rows that have none.
  const place = (rank: number): number =>
    rank === NONE ? count : descending ? count - 1 - rank : rank;
  const next = new Int32Array(count + 2);
  for (const rank of of) next[place(rank) + 1] = (next[place(rank) + 1] as number) + 1;
  for (let at = 1; at < next.length; at += 1) {
    next[at] = (next[at] as number) + (next[at - 1] as number);
  }
  const order = new Int32Array(of.length);
  for (let row = 0; row < of.length; row += 1) {
    const at = place(of[row] as number);
    const to = next[at] as number;
    order[to] = row;
    next[at] = to + 1;
  }
  return order;
}
