/** The values of a heat map by rank and step, the medians of steps, and the order of ranks. Pure. */
import type { RankSteps } from '../../../api/types.gen';
import { natural } from '../../../core/natural';
import { type RankRange, rankName } from '../ranks';

export type Order = 'rank' | 'excess' | 'node' | 'group';
export type Norm = 'absolute' | 'median';

export interface Grid {
  readonly rows: number;
  readonly columns: number;
  /** Row by row; NaN where not recorded. */
  readonly values: Float64Array;
  /** Per column; NaN if nothing was recorded. */
  readonly medians: Float64Array;
  /** Per row: mean excess over the medians, positive if worse. */
  readonly excess: Float64Array;
}

/** One line of the map: a rank, or ranks without traces. */
export type Line =
  | { readonly kind: 'rank'; readonly row: number }
  | { readonly kind: 'missing'; readonly ranks: RankRange };

export function medianOf(sorted: Float64Array): number {
  const { length } = sorted;
  if (length === 0) return Number.NaN;
  const middle = length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return length % 2 === 1 ? upper : ((sorted[middle - 1] ?? upper) + upper) / 2;
}

function columnMedians(values: Float64Array, rows: number, columns: number): Float64Array {
  const medians = new Float64Array(columns);
  const column = new Float64Array(rows);
  for (let at = 0; at < columns; at += 1) {
    let count = 0;
    for (let row = 0; row < rows; row += 1) {
      const value = values[row * columns + at] ?? Number.NaN;
      if (!Number.isNaN(value)) column[count++] = value;
    }
    medians[at] = medianOf(column.slice(0, count).sort());
  }
  return medians;
}

/** The mean difference of a row from the medians; NaN without values. */
function beyondMedians(row: Float64Array, medians: Float64Array): number {
  let [sum, count] = [0, 0];
  row.forEach((value, column) => {
    const beyond = value - (medians[column] ?? Number.NaN);
    if (Number.isNaN(beyond)) return;
    sum += beyond;
    count += 1;
  });
  return count > 0 ? sum / count : Number.NaN;
}

export function gridOf(steps: RankSteps): Grid {
  const [rows, columns] = [steps.values.length, steps.steps.length];
  const values = new Float64Array(rows * columns).fill(Number.NaN);
  steps.values.forEach((row, at) => {
    row.forEach((value, column) => {
      if (value !== null) values[at * columns + column] = value * steps.scale;
    });
  });
  const medians = columnMedians(values, rows, columns);
  const sign = steps.is_high_bad ? 1 : -1;
  const excess = Float64Array.from({ length: rows }, (_, row) => {
    return sign * beyondMedians(values.subarray(row * columns, (row + 1) * columns), medians);
  });
  return { rows, columns, values, medians, excess };
}

const orLast = (rank: number | null | undefined): number => rank ?? Number.MAX_SAFE_INTEGER;

const byRank = (steps: RankSteps, a: number, b: number): number =>
  orLast(steps.ranks[a]) - orLast(steps.ranks[b]) || a - b;

function byNode(steps: RankSteps, a: number, b: number): number {
  const [left, right] = [steps.hosts[a] ?? null, steps.hosts[b] ?? null];
  if (left === null || right === null)
    return Number(left === null) - Number(right === null) || byRank(steps, a, b);
  return natural.compare(left, right) || byRank(steps, a, b);
}

/** By process group; ranks without one come last. */
function byGroup(
  groupOf: ReadonlyMap<number, number>,
  steps: RankSteps,
  [a, b]: readonly [number, number],
): number {
  const group = (row: number): number =>
    groupOf.get(steps.ranks[row] ?? -1) ?? Number.MAX_SAFE_INTEGER;
  return group(a) - group(b) || byRank(steps, a, b);
}

/** The largest excess first, unknown ones last. */
function byExcess({ excess }: Grid, a: number, b: number): number {
  const [left = Number.NaN, right = Number.NaN] = [excess[a], excess[b]];
  const [isLeft, isRight] = [Number.isNaN(left), Number.isNaN(right)];
  if (isLeft || isRight) return Number(isLeft) - Number(isRight) || a - b;
  return right - left || a - b;
}

/** The lines with one line per range of missing ranks. */
function withMissing(
  lines: readonly Line[],
  steps: RankSteps,
  missing: readonly RankRange[],
): Line[] {
  const gaps = missing.map((ranks): readonly [number, Line] => [
    ranks.first,
    { kind: 'missing', ranks },
  ]);
  const count = lines.map((line): readonly [number, Line] => [
    line.kind === 'rank' ? orLast(steps.ranks[line.row]) : 0,
    line,
  ]);
  return [...count, ...gaps].sort(([a], [b]) => a - b).map(([, line]) => line);
}

export interface Lining {
  readonly order: Order;
  readonly missing: readonly RankRange[];
  /** Rank to the position of its process group. */
  readonly groupOf?: ReadonlyMap<number, number>;
}

const NO_GROUPS: ReadonlyMap<number, number> = new Map();

export function linesOf(
  steps: RankSteps,
  grid: Grid,
  { order, missing, groupOf = NO_GROUPS }: Lining,
): Line[] {
  const rows = Array.from({ length: grid.rows }, (_, row) => row);
  if (order === 'excess') rows.sort((a, b) => byExcess(grid, a, b));
  else if (order === 'node') rows.sort((a, b) => byNode(steps, a, b));
  else if (order === 'group') rows.sort((a, b) => byGroup(groupOf, steps, [a, b]));
  else rows.sort((a, b) => byRank(steps, a, b));
  const lines = rows.map((row): Line => ({ kind: 'rank', row }));
  return order === 'rank' ? withMissing(lines, steps, missing) : lines;
}

/** The value of a cell, or its difference from the median of the step. */
export function figure(grid: Grid, row: number, column: number, norm: Norm): number {
  const value = grid.values[row * grid.columns + column] ?? Number.NaN;
  return norm === 'median' ? value - (grid.medians[column] ?? Number.NaN) : value;
}

export const nameOfRow = (steps: RankSteps, row: number): string =>
  rankName({ rank: steps.ranks[row] ?? null, worker: steps.workers[row] ?? '' });

export function nameOfLine(line: Line, steps: RankSteps): string {
  if (line.kind === 'rank') return nameOfRow(steps, line.row);
  const { first, last } = line.ranks;
  return first === last ? `rank ${first}` : `ranks ${first}–${last}`;
}
