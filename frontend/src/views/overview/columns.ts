/** Steps as the columns of a chart, grouped if there are too many. Pure. */
import type { StepRow } from '../../api/types.gen';
import type { TimeRange } from '../../state/location';

export const MOST_COLUMNS = 240;

export interface Column {
  /** The number of the first step. */
  readonly number: number;
  readonly name: string;
  readonly partsNs: readonly number[];
  readonly first: StepRow;
  readonly last: StepRow;
}

function mean(rows: readonly StepRow[]): number[] {
  const parts = rows[0]?.parts_ns ?? [];
  return parts.map(
    (_, part) => rows.reduce((sum, row) => sum + (row.parts_ns[part] ?? 0), 0) / rows.length,
  );
}

export function columnsOf(steps: readonly StepRow[], most = MOST_COLUMNS): Column[] {
  const groupSize = Math.max(1, Math.ceil(steps.length / most));
  const columns: Column[] = [];
  for (let at = 0; at < steps.length; at += groupSize) {
    const group = steps.slice(at, at + groupSize);
    const [first, last] = [group[0], group.at(-1)];
    if (!first || !last) continue;
    columns.push({
      number: first.number,
      name: first === last ? first.name : `Steps ${first.number} – ${last.number}, mean`,
      partsNs: first === last ? first.parts_ns : mean(group),
      first,
      last,
    });
  }
  return columns;
}

/** The host time of consecutive columns. */
export const timeOf = (first: Column, last: Column): TimeRange => ({
  startNs: first.first.host_start_ns,
  endNs: last.last.host_end_ns,
});

/** The columns that begin within a time; null for none. */
export function columnsIn(
  columns: readonly Column[],
  time: TimeRange | null,
): readonly [number, number] | null {
  if (!time) return null;
  const isIn = ({ first }: Column): boolean =>
    first.host_start_ns >= time.startNs && first.host_start_ns < time.endNs;
  const first = columns.findIndex(isIn);
  return first < 0 ? null : [first, columns.findLastIndex(isIn)];
}
