import { type ReactNode, useMemo } from 'react';
import type { Category, Distributed, RankBreakdown } from '../../../api/types.gen';
import { count, duration, plural, quantityExact, share } from '../../../core/format';
import { useNavigation } from '../../../state/navigation';
import { useOption } from '../../../state/option';
import type { Selection } from '../../../state/selection';
import { ExportMenu } from '../../../widgets/export_menu';
import { Loaded } from '../../../widgets/loaded';
import { saveTable } from '../../../widgets/save_table';
import { Segmented } from '../../../widgets/segmented';
import { Windowed } from '../../../widgets/windowed';
import { fillOfPart } from '../colours';
import { useRanksAnswer } from '../queries';
import { type BarRow, barRows, partsOf, type Unit, type Whole } from './rows';

const ROW_PX = 24;
const WHOLES: readonly { id: Whole; label: string; title: string }[] = [
  { id: 'step', label: 'Step', title: 'Where the step of each rank goes' },
  {
    id: 'communication',
    label: 'Communication',
    title: 'How much of the collectives’ time is transfer, and how much waiting for other ranks',
  },
];
const UNITS: readonly { id: Unit; label: string; title: string }[] = [
  { id: 'rank', label: 'Ranks', title: 'A row a rank' },
  { id: 'node', label: 'Nodes', title: 'A row a node: the mean of its ranks' },
];

function titleOf(row: BarRow, parts: readonly Category[]): string {
  const whole = `${row.name}: ${quantityExact(Math.round(row.wholeNs), 'ns')}`;
  const lines = parts.map(({ label }, at) => {
    const value = row.partsNs?.[at] ?? 0;
    return `${label}: ${duration(value)}, ${share(value / Math.max(1, row.wholeNs))}`;
  });
  return [
    whole,
    ...(row.partsNs ? lines : ['How it is split is not known']),
    ...hiddenWords(row, parts),
  ].join('\n');
}

/** How much of the communication computing hides, where the parts tell. */
function hiddenWords({ partsNs }: BarRow, parts: readonly Category[]): string[] {
  const of = (id: string): number => partsNs?.[parts.findIndex((part) => part.id === id)] ?? 0;
  const sent = of('overlapped') + of('transfer') + of('waiting');
  const isTold = parts.some(({ id }) => id === 'overlapped') && sent > 0;
  return isTold ? [`Computing hides ${share(of('overlapped') / sent)} of the communication`] : [];
}

interface RowProps {
  readonly row: BarRow;
  readonly parts: readonly Category[];
  readonly mostNs: number;
  readonly isChosen: boolean;
}

function Row({ row, parts, mostNs, isChosen }: RowProps): ReactNode {
  const { location, go } = useNavigation();
  const { worker, partsNs } = row;
  const words = parts.map(({ label }, at) => `${label} ${duration(partsNs?.[at] ?? 0)}`).join(', ');
  const body = (
    <>
      <span className="rank-bar-name">{row.name}</span>
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
      <span className="visually-hidden">{partsNs ? words : 'How it is split is not known'}</span>
    </>
  );
  const title = titleOf(row, parts);
  if (worker === null)
    return (
      <div className="rank-bar-row" title={`${title}\nMean of ${plural(row.count, 'rank')}`}>
        {body}
      </div>
    );
  return (
    <button
      type="button"
      className="rank-bar-row"
      title={title}
      aria-pressed={isChosen}
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

/** What the colours are, with the mean over the rows; each puts the rows with most of it first. */
function BarLegend({ parts, rows, sort, onSort }: LegendProps): ReactNode {
  const known = rows.filter(({ partsNs }) => partsNs !== null);
  const meanNs = (at: number): number =>
    known.reduce((sum, { partsNs }) => sum + (partsNs?.[at] ?? 0), 0) / Math.max(1, known.length);
  const shown = parts.map((part, at) => ({ ...part, meanNs: meanNs(at) }));
  return (
    <ul className="rank-bar-legend" aria-label="Parts; choose one to sort by it">
      {shown
        .filter((part) => part.meanNs > 0)
        .map(({ id, label, help, meanNs: ns }) => (
          <li key={id}>
            <button
              type="button"
              aria-pressed={sort === id}
              title={`${help}\nChoose it to have the rows with most of it first.`}
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

interface Props {
  readonly selection: Selection;
  readonly summary: Distributed;
}

interface ChartProps extends Props {
  readonly answer: RankBreakdown;
  readonly whole: Whole;
  readonly unit: Unit;
}

function exportRows(rows: readonly BarRow[], parts: readonly Category[]) {
  const time = (key: string, label: string) => ({
    key,
    label,
    unit: 'ns' as const,
    help: '',
    hidden: false,
  });
  const text = (key: string, label: string) => ({ ...time(key, label), unit: 'text' as const });
  return {
    columns: [
      text('name', 'Rank'),
      text('host', 'Node'),
      time('whole', 'Whole'),
      ...parts.map(({ id, label }) => time(id, label)),
    ],
    rows: rows.map((row) => [
      row.name,
      row.host,
      row.wholeNs,
      ...parts.map((_, at) => row.partsNs?.[at] ?? null),
    ]),
  };
}

function Chart({ selection, answer, whole, unit, summary }: ChartProps): ReactNode {
  const { location } = useNavigation();
  const parts = partsOf(answer, whole);
  const known = ['rank', 'whole', ...parts.map(({ id }) => id)];
  const [sort, setSort] = useOption('bars-sort', 'rank', known);
  const rows = useMemo(() => barRows(answer, { whole, unit, sort }), [answer, whole, unit, sort]);
  const mostNs = Math.max(1, ...rows.map(({ wholeNs }) => wholeNs));
  const active = rows.findIndex(({ worker }) => worker !== null && worker === location.worker);
  const missing = answer.without_step.length;
  return (
    <>
      <div className="rank-bars-head">
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
        <ExportMenu
          note="Every row, in full precision."
          onExport={(format) => {
            saveTable({
              name: [selection.run.name, 'ranks', whole],
              format,
              table: exportRows(rows, parts),
              about: { step: answer.step, whole },
            });
          }}
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
                  isChosen={row.worker === location.worker}
                />
              )
            );
          }}
        />
      </div>
      <p className="muted rank-bars-note">
        {answer.step === null ? 'Mean over the steps' : `Step ${answer.step}`} of{' '}
        {plural(answer.rows.length, 'rank')}
        {missing > 0 && `; ${count(missing)} did not record it`}. What has colours sums to the whole
        {whole === 'communication' && ', concurrent collectives counted once'}.
        {summary.missing_count > 0 && ' Waiting for ranks that are missing counts as transfer.'}
      </p>
    </>
  );
}

/** Where the step of each rank goes; how much of its communication is waiting. */
export function Bars({ selection, summary }: Props): ReactNode {
  const { location } = useNavigation();
  const [whole, setWhole] = useOption<Whole>('bars', 'step', ['step', 'communication']);
  const [unit, setUnit] = useOption<Unit>('by', 'rank', ['rank', 'node']);
  const query = useRanksAnswer<RankBreakdown>(selection, 'distributed/ranks', {
    step: summary.steps.includes(location.step ?? -1) ? location.step : null,
  });
  return (
    <section className="card" aria-label="Ranks side by side">
      <div className="heat-controls">
        <Segmented label="What of" segments={WHOLES} value={whole} onChoose={setWhole} />
        {summary.host_count > 1 && (
          <Segmented label="Rows" segments={UNITS} value={unit} onChoose={setUnit} />
        )}
      </div>
      <Loaded query={query} what="The ranks side by side">
        {(answer) => (
          <Chart
            selection={selection}
            summary={summary}
            answer={answer}
            whole={whole}
            unit={summary.host_count > 1 ? unit : 'rank'}
          />
        )}
      </Loaded>
    </section>
  );
}
