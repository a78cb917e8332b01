/** How a figure spreads over the ranks: bins, the median, and who is far from it. Pure. */
import { figure, type Grid } from './grid';

/** As the server tells outliers: by the median and the deviations from it, which no outlier moves. */
const ODD_SCORE = 3.5;
const DEVIATION_TO_SIGMA = 0.6745;
/** How often one of all ranks may lie further out by chance. */
const CHANCE = 0.05;
/** Ranks that differ by less than this of the median differ in nothing that matters. */
const LEAST_SHARE = 0.01;
const MOST_BINS = 40;

export interface Odd {
  readonly row: number;
  readonly value: number;
  readonly beyond: number;
}

export interface Bin {
  readonly low: number;
  readonly high: number;
  readonly count: number;
}

export interface Spread {
  readonly count: number;
  readonly median: number;
  readonly low: number;
  readonly high: number;
  readonly bins: readonly Bin[];
  /** The furthest first. */
  readonly odd: readonly Odd[];
}

function middle(sorted: Float64Array): number {
  const half = sorted.length >> 1;
  const upper = sorted[half] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[half - 1] ?? upper) + upper) / 2;
}

/** Of each rank its mean over the steps, or what it has in one of them, no less than a floor; NaN where that is not known. */
export function valuesOf(
  grid: Grid,
  column: number | null,
  floor = Number.NEGATIVE_INFINITY,
): Float64Array {
  const of = (row: number, at: number): number =>
    Math.max(floor, figure(grid, row, at, 'absolute'));
  return Float64Array.from({ length: grid.rows }, (_, row) => {
    if (column !== null) return of(row, column);
    let [sum, known] = [0, 0];
    for (let at = 0; at < grid.columns; at += 1) {
      const value = of(row, at);
      if (Number.isNaN(value)) continue;
      sum += value;
      known += 1;
    }
    return known > 0 ? sum / known : Number.NaN;
  });
}

function binsOf(sorted: Float64Array, low: number, high: number): Bin[] {
  const number = high > low ? Math.min(MOST_BINS, Math.max(8, Math.ceil(sorted.length / 4))) : 1;
  const width = (high - low) / number;
  const counts = new Array<number>(number).fill(0);
  for (const value of sorted) {
    const at = width > 0 ? Math.min(number - 1, Math.floor((value - low) / width)) : 0;
    counts[at] = (counts[at] ?? 0) + 1;
  }
  return counts.map((count, at) => ({
    low: low + at * width,
    high: low + (at + 1) * width,
    count,
  }));
}

/** Of more ranks one must lie further out to be odd: `outlier_score` of analyses/communication/robust_zscore.py. */
const oddScore = (count: number): number =>
  Math.max(ODD_SCORE, Math.sqrt(2 * Math.log(count / CHANCE)));

/** Null where fewer than three ranks are known: nothing tells what is usual. */
export function spreadOf(values: Float64Array): Spread | null {
  const sorted = values.filter((value) => !Number.isNaN(value)).sort();
  if (sorted.length < 3) return null;
  const median = middle(sorted);
  const deviation = middle(sorted.map((value) => Math.abs(value - median)).sort());
  const least = Math.max(
    (oddScore(sorted.length) / DEVIATION_TO_SIGMA) * deviation,
    LEAST_SHARE * Math.abs(median),
  );
  const odd = [...values]
    .map((value, row) => ({ row, value, beyond: value - median }))
    .filter(({ beyond }) => Math.abs(beyond) > least)
    .sort((a, b) => Math.abs(b.beyond) - Math.abs(a.beyond));
  const [low = 0, high = 0] = [sorted[0], sorted.at(-1)];
  return { count: sorted.length, median, low, high, bins: binsOf(sorted, low, high), odd };
}
