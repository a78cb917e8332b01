import { type ReactNode, useMemo } from 'react';
import type { Category, RankBreakdown, RankRow } from '../../api/types.gen';
import { column } from '../../core/columns';
import type { ExportTable } from '../../core/export';
import { count, duration, plural, quantityExact, share } from '../../core/format';
import { useNavigation } from '../../state/navigation';
import { useOption } from '../../state/option';
import { Loaded } from '../../widgets/loaded';
import { type Segment, Segmented, useSegments } from '../../widgets/segmented';
import { TableExport } from '../../widgets/table_export';
import { Windowed } from '../../widgets/windowed';
import { type JobProps, useRanksQuery } from './queries';
import { capital, fillOfPart, rankName } from './ranks';

export type Whole = 'step' | 'communication';
export type Unit = 'rank' | 'node';

export interface BarRow {
  readonly key: string;
  readonly name: string;
  readonly worker: string | null;
  readonly rank: number | null;
  readonly host: string | null;
  readonly wholeNs: number;
  /** In the order of the parts; they sum to the whole. Null: not recorded. */
  readonly partsNs: readonly number[] | null;
  /** Number of ranks; a node's times are their means. */
  readonly count: number;
}

export const SPLIT: readonly Category[] = [
  {
    id: 'transfer',
    label: 'Transfer',
    help: 'Time of collectives, as long as it takes their fastest rank.',
  },
  {
    id: 'waiting',
    label: 'Waiting for other ranks',
    help: 'The remaining time of the collectives, whether or not it overlaps with computing.',
  },
];

export const partsOf = (breakdown: RankBreakdown, whole: Whole): readonly Category[] =>
  whole === 'step' ? breakdown.categories : SPLIT;

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
  const splits = rows.flatMap(({ partsNs }) => (partsNs ? [partsNs] : []));
  const isSplit = splits.length === rows.length;
  const parts = splits[0]?.map((_, part) => mean(splits.map((parts) => parts[part] ?? 0))) ?? null;
  return {
    key: host,
    name: host,
    worker: null,
    rank: rows[0]?.rank ?? null,
    host,
    wholeNs: mean(rows.map(({ wholeNs }) => wholeNs)),
    partsNs: isSplit ? parts : null,
    count: rows.length,
  };
}

function byNode(ranks: readonly BarRow[]): BarRow[] {
  const nodes = new Map<string, BarRow[]>();
  for (const row of ranks) {
    const host = row.host ?? 'Node not recorded';
    nodes.set(host, [...(nodes.get(host) ?? []), row]);
  }
  return [...nodes].map(([host, ranks]) => nodeOf(host, ranks));
}

export interface BarOptions {
  readonly whole: Whole;
  readonly unit: Unit;
  /** `rank`, `whole`, or a part's id: the largest first. */
  readonly sort: string;
}

export function barRows(breakdown: RankBreakdown, { whole, unit, sort }: BarOptions): BarRow[] {
  const ranks = breakdown.rows.map((row) => rowOf(row, whole));
  const rows = unit === 'rank' ? ranks : byNode(ranks);
  const part = partsOf(breakdown, whole).findIndex(({ id }) => id === sort);
  if (part < 0 && sort !== 'whole') return rows;
  const value = (row: BarRow): number =>
    part < 0 ? row.wholeNs : (row.partsNs?.[part] ?? Number.NEGATIVE_INFINITY);
  return rows.sort((a, b) => value(b) - value(a));
}

const ROW_PX = 24;
const UNKNOWN_SPLIT = 'Its parts are unknown';
const WHOLES: readonly Segment<Whole>[] = [
  { id: 'step', label: 'Step', title: 'Parts of the step of each rank' },
  {
    id: 'communication',
    label: 'Communication',
    title: 'Transfer and waiting for other ranks within the time of collectives',
  },
];
const UNITS: readonly Segment<Unit>[] = [
  { id: 'rank', label: 'Ranks', title: 'One row per rank' },
  { id: 'node', label: 'Nodes', title: 'One row per node: the mean of its ranks' },
];

function titleOf(row: BarRow, parts: readonly Category[]): string {
  const whole = `${row.name}: ${quantityExact(Math.round(row.wholeNs), 'ns')}`;
  const lines = parts.map(({ label }, at) => {
    const value = row.partsNs?.[at] ?? 0;
    return `${label}: ${duration(value)}, ${share(value / Math.max(1, row.wholeNs))}`;
  });
  return [whole, ...(row.partsNs ? lines : [UNKNOWN_SPLIT]), ...hiddenNote(row, parts)].join('\n');
}

/** The part of the communication that overlaps with computing. */
function hiddenNote({ partsNs }: BarRow, parts: readonly Category[]): string[] {
  const of = (id: string): number => partsNs?.[parts.findIndex((part) => part.id === id)] ?? 0;
  const sent = of('overlapped') + of('transfer') + of('waiting');
  const isSplit = parts.some(({ id }) => id === 'overlapped') && sent > 0;
  return isSplit
    ? [`${share(of('overlapped') / sent)} of the communication overlaps with computing`]
    : [];
}

interface RowProps {
  readonly row: BarRow;
  readonly parts: readonly Category[];
  readonly mostNs: number;
  readonly isSelected: boolean;
}

function Row({ row, parts, mostNs, isSelected }: RowProps): ReactNode {
  const { location, go } = useNavigation();
  const { worker, partsNs } = row;
  const text = parts.map(({ label }, at) => `${label} ${duration(partsNs?.[at] ?? 0)}`).join(', ');
  const body = (
    <>
      <span className="rank-bar-name ellipsis">{row.name}</span>
      <span className="rank-bar-track" aria-hidden="true">
        <span className="rank-bar" style={{ width: `${(row.wholeNs / mostNs) * 100}%` }}>
          {partsNs ? (
            parts.map(({ id }, at) => (
              <span key={id} style={{ flexGrow: partsNs[at], background: fillOfPart(id) }} />
            ))
          ) : (
            <span className="rank-bar-unknown" style={{ flexGrow: 1 }} />
          )}
        </span>
      </span>
      <span className="rank-bar-value number">{duration(row.wholeNs)}</span>
      <span className="visually-hidden">{partsNs ? text : UNKNOWN_SPLIT}</span>
    </>
  );
  const title = titleOf(row, parts);
  if (worker === null)
    return (
      <div
        className="rank-bar-row option-row"
        title={`${title}\nMean of ${plural(row.count, 'rank')}`}
      >
        {body}
      </div>
    );
  return (
    <button
      type="button"
      className="rank-bar-row option-row"
      title={title}
      aria-pressed={isSelected}
      onClick={() => go({ worker, step: location.step }, 'replace')}
    >
      {body}
    </button>
  );
}

interface LegendProps {
  readonly parts: readonly Category[];
  readonly rows: readonly BarRow[];
  readonly sort: string;
  readonly onSort: (sort: string) => void;
}

/** The legend with the mean of each part; its buttons sort by a part. */
function BarLegend({ parts, rows, sort, onSort }: LegendProps): ReactNode {
  const splits = rows.flatMap(({ partsNs }) => (partsNs ? [partsNs] : []));
  const meanNs = (at: number): number => mean(splits.map((split) => split[at] ?? 0));
  const shown = parts.map((part, at) => ({ ...part, meanNs: meanNs(at) }));
  return (
    <ul className="rank-bar-legend" aria-label="Parts; select one to sort by it">
      {shown
        .filter((part) => part.meanNs > 0)
        .map(({ id, label, help, meanNs: ns }) => (
          <li key={id}>
            <button
              type="button"
              aria-pressed={sort === id}
              title={`${help}\nClick to sort by it.`}
              onClick={() => onSort(sort === id ? 'rank' : id)}
            >
              <span className="swatch" style={{ background: fillOfPart(id) }} />
              <span>{label}</span>
              <span className="number muted">{duration(ns)}</span>
            </button>
          </li>
        ))}
    </ul>
  );
}

interface ChartProps extends JobProps {
  readonly breakdown: RankBreakdown;
  readonly whole: Whole;
  readonly unit: Unit;
}

const exported = (rows: readonly BarRow[], parts: readonly Category[]): ExportTable => ({
  columns: [
    column('name', 'Rank', 'text'),
    column('host', 'Node', 'text'),
    column('whole', 'Whole', 'ns'),
    ...parts.map(({ id, label }) => column(id, label, 'ns')),
  ],
  rows: rows.map((row) => [
    row.name,
    row.host,
    row.wholeNs,
    ...parts.map((_, at) => row.partsNs?.[at] ?? null),
  ]),
});

function Chart({ selection, breakdown, whole, unit, summary }: ChartProps): ReactNode {
  const { location } = useNavigation();
  const parts = partsOf(breakdown, whole);
  const ids = ['rank', 'whole', ...parts.map(({ id }) => id)];
  const [sort, setSort] = useOption('bars-sort', 'rank', ids);
  const rows = useMemo(
    () => barRows(breakdown, { whole, unit, sort }),
    [breakdown, whole, unit, sort],
  );
  const mostNs = Math.max(1, ...rows.map(({ wholeNs }) => wholeNs));
  const active = rows.findIndex(({ worker }) => worker !== null && worker === location.worker);
  const missing = breakdown.without_step.length;
  return (
    <>
      <div className="rank-bars-head wrap">
        <BarLegend parts={parts} rows={rows} sort={sort} onSort={setSort} />
        <Segmented
          label="Order"
          segments={[
            { id: 'rank', label: unit === 'rank' ? 'By rank' : 'By node' },
            { id: 'whole', label: 'Longest first' },
          ]}
          value={sort}
          onChoose={setSort}
        />
        <TableExport
          note="All rows, in full precision."
          name={[selection.run.name, 'ranks', whole]}
          table={() => exported(rows, parts)}
          about={{ step: breakdown.step, whole }}
        />
      </div>
      <div className="rank-bars">
        <Windowed
          count={rows.length}
          rowPx={ROW_PX}
          active={active}
          render={(at) => {
            const row = rows[at];
            return (
              row && (
                <Row
                  row={row}
                  parts={parts}
                  mostNs={mostNs}
                  isSelected={row.worker === location.worker}
                />
              )
            );
          }}
        />
      </div>
      <p className="muted rank-bars-note">
        {breakdown.step === null ? 'Mean over the steps' : `Step ${breakdown.step}`} of{' '}
        {plural(breakdown.rows.length, 'rank')}
        {missing > 0 && `; ${count(missing)} did not record it`}. The coloured parts sum to the
        whole
        {whole === 'communication' && '; concurrent collectives count once'}.
        {summary.missing_count > 0 && ' Waiting for ranks that are missing counts as transfer.'}
      </p>
    </>
  );
}

/** The parts of the step, or of the communication, of each rank. */
export function Bars({ selection, summary }: JobProps): ReactNode {
  const { location } = useNavigation();
  const [whole, wholes] = useSegments<Whole>('bars', { label: 'Whole', segments: WHOLES });
  const [unit, units] = useSegments<Unit>('by', { label: 'Rows', segments: UNITS });
  const query = useRanksQuery(selection, 'distributed/ranks', {
    step: summary.steps.includes(location.step ?? -1) ? location.step : null,
  });
  return (
    <section className="card" aria-label="Ranks side by side">
      <div className="heat-controls wrap">
        {wholes}
        {summary.host_count > 1 && units}
      </div>
      <Loaded query={query} what="The ranks side by side">
        {(breakdown) => (
          <Chart
            selection={selection}
            summary={summary}
            breakdown={breakdown}
            whole={whole}
            unit={summary.host_count > 1 ? unit : 'rank'}
          />
        )}
      </Loaded>
    </section>
  );
}
