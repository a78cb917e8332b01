/** The distribution of a metric over the ranks: bins, median, outliers. Pure. */
import { figure, type Grid, medianOf } from './grid';

/** As on the server: the modified z-score, from the median absolute deviation. */
const ODD_SCORE = 3.5;
const DEVIATION_TO_SIGMA = 0.6745;
/** Probability of a false outlier among all ranks. */
const CHANCE = 0.05;
/** Least relevant difference, as a fraction of the median. */
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

/** The mean over the steps of each rank, or its value in one step; at least `floor`, NaN if not recorded. */
export function valuesOf(
  grid: Grid,
  column: number | null,
  floor = Number.NEGATIVE_INFINITY,
): Float64Array {
  const of = (row: number, at: number): number =>
    Math.max(floor, figure(grid, row, at, 'absolute'));
  return Float64Array.from({ length: grid.rows }, (_, row) => {
    if (column !== null) return of(row, column);
    let [sum, count] = [0, 0];
    for (let at = 0; at < grid.columns; at += 1) {
      const value = of(row, at);
      if (Number.isNaN(value)) continue;
      sum += value;
      count += 1;
    }
    return count > 0 ? sum / count : Number.NaN;
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

/** The threshold grows with the number of ranks: `outlier_score` of analyses/communication/robust_zscore.py. */
const oddScore = (count: number): number =>
  Math.max(ODD_SCORE, Math.sqrt(2 * Math.log(count / CHANCE)));

/** Null for fewer than three recorded ranks. */
export function spreadOf(values: Float64Array): Spread | null {
  const sorted = values.filter((value) => !Number.isNaN(value)).sort();
  if (sorted.length < 3) return null;
  const median = medianOf(sorted);
  const deviation = medianOf(sorted.map((value) => Math.abs(value - median)).sort());
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
