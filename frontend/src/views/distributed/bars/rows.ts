/** The rows of the bar chart: a rank each or a node each, in some order. Pure. */
import type { Category, RankBreakdown, RankRow } from '../../../api/types.gen';
import { capital, rankName } from '../names';

export type Whole = 'step' | 'communication';
export type Unit = 'rank' | 'node';

export interface BarRow {
  readonly key: string;
  readonly name: string;
  readonly worker: string | null;
  readonly rank: number | null;
  readonly host: string | null;
  readonly wholeNs: number;
  /** They follow the parts, and sum to the whole; null: it is not known how it is split. */
  readonly partsNs: readonly number[] | null;
  /** How many ranks it is the mean of. */
  readonly count: number;
}

export const SPLIT: readonly Category[] = [
  {
    id: 'transfer',
    label: 'Transfer',
    help: 'Of the collectives’ time, as long as the shortest of their ranks took.',
  },
  {
    id: 'waiting',
    label: 'Waiting for other ranks',
    help: 'The time of collectives beyond that, hidden behind computing or not.',
  },
];

export const partsOf = (answer: RankBreakdown, whole: Whole): readonly Category[] =>
  whole === 'step' ? answer.categories : SPLIT;

function splitOf({ transfer_ns, wait_ns }: RankRow): readonly number[] | null {
  return transfer_ns === null || wait_ns === null ? null : [transfer_ns, wait_ns];
}

function rowOf(row: RankRow, whole: Whole): BarRow {
  return {
    key: row.worker,
    name: capital(rankName(row)),
    worker: row.worker,
    rank: row.rank,
    host: row.host,
    wholeNs: whole === 'step' ? row.duration_ns : row.communication_ns,
    partsNs: whole === 'step' ? row.parts_ns : splitOf(row),
    count: 1,
  };
}

const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);

function nodeOf(host: string, rows: readonly BarRow[]): BarRow {
  const known = rows.flatMap(({ partsNs }) => (partsNs ? [partsNs] : []));
  const isKnown = known.length === rows.length;
  const parts = known[0]?.map((_, part) => mean(known.map((each) => each[part] ?? 0))) ?? null;
  return {
    key: host,
    name: host,
    worker: null,
    rank: rows[0]?.rank ?? null,
    host,
    wholeNs: mean(rows.map(({ wholeNs }) => wholeNs)),
    partsNs: isKnown ? parts : null,
    count: rows.length,
  };
}

function byNode(ranks: readonly BarRow[]): BarRow[] {
  const nodes = new Map<string, BarRow[]>();
  for (const row of ranks) {
    const host = row.host ?? 'Node not recorded';
    nodes.set(host, [...(nodes.get(host) ?? []), row]);
  }
  return [...nodes].map(([host, own]) => nodeOf(host, own));
}

export interface Asked {
  readonly whole: Whole;
  readonly unit: Unit;
  /** `rank`, `whole`, or a part's id: the largest first. */
  readonly sort: string;
}

export function barRows(answer: RankBreakdown, { whole, unit, sort }: Asked): BarRow[] {
  const ranks = answer.rows.map((row) => rowOf(row, whole));
  const rows = unit === 'rank' ? ranks : byNode(ranks);
  const part = partsOf(answer, whole).findIndex(({ id }) => id === sort);
  if (part < 0 && sort !== 'whole') return rows;
  const value = (row: BarRow): number =>
    part < 0 ? row.wholeNs : (row.partsNs?.[part] ?? Number.NEGATIVE_INFINITY);
  return rows.sort((a, b) => value(b) - value(a));
}
