/** The figures of a heat map: values by rank and step, the step's medians, and in which order ranks stand. Pure. */
import type { RankSteps } from '../../../api/types.gen';
import { natural } from '../../../core/natural';
import { type RankRange, rankName } from '../names';

export type Order = 'rank' | 'excess' | 'node' | 'group';
export type Norm = 'absolute' | 'median';

export interface Grid {
  readonly rows: number;
  readonly columns: number;
  /** Row by row; NaN where not recorded. */
  readonly values: Float64Array;
  /** Of each column; NaN where nothing was recorded. */
  readonly medians: Float64Array;
  /** Of each row: by how much it is worse than the medians, on average over its steps. */
  readonly excess: Float64Array;
}

/** One line of the map: a rank, or ranks of which there is no recording. */
export type Line =
  | { readonly kind: 'rank'; readonly row: number }
  | { readonly kind: 'missing'; readonly ranks: RankRange };

function medianOf(sorted: Float64Array): number {
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
    let known = 0;
    for (let row = 0; row < rows; row += 1) {
      const value = values[row * columns + at] ?? Number.NaN;
      if (!Number.isNaN(value)) column[known++] = value;
    }
    medians[at] = medianOf(column.slice(0, known).sort());
  }
  return medians;
}

/** The mean of what a row has beyond the medians; NaN where nothing of it is known. */
function beyondMedians(row: Float64Array, medians: Float64Array): number {
  let [sum, known] = [0, 0];
  row.forEach((value, column) => {
    const beyond = value - (medians[column] ?? Number.NaN);
    if (Number.isNaN(beyond)) return;
    sum += beyond;
    known += 1;
  });
  return known > 0 ? sum / known : Number.NaN;
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

/** Group by group; ranks of none come last. */
function byGroup(
  groupOf: ReadonlyMap<number, number>,
  steps: RankSteps,
  [a, b]: readonly [number, number],
): number {
  const place = (row: number): number =>
    groupOf.get(steps.ranks[row] ?? -1) ?? Number.MAX_SAFE_INTEGER;
  return place(a) - place(b) || byRank(steps, a, b);
}

/** The largest excess first; what is unknown comes last. */
function byExcess({ excess }: Grid, a: number, b: number): number {
  const [left = Number.NaN, right = Number.NaN] = [excess[a], excess[b]];
  const [isLeft, isRight] = [Number.isNaN(left), Number.isNaN(right)];
  if (isLeft || isRight) return Number(isLeft) - Number(isRight) || a - b;
  return right - left || a - b;
}

/** Where ranks are missing, one line stands for each unbroken row of them. */
function withMissing(
  lines: readonly Line[],
  steps: RankSteps,
  missing: readonly RankRange[],
): Line[] {
  const places = missing.map((ranks): readonly [number, Line] => [
    ranks.first,
    { kind: 'missing', ranks },
  ]);
  const known = lines.map((line): readonly [number, Line] => [
    line.kind === 'rank' ? orLast(steps.ranks[line.row]) : 0,
    line,
  ]);
  return [...known, ...places].sort(([a], [b]) => a - b).map(([, line]) => line);
}

export interface Lining {
  readonly order: Order;
  readonly missing: readonly RankRange[];
  /** Rank to the place of its process group. */
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

/** The value of a cell, or what it has beyond the step's median. */
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
