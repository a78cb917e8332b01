import { type ReactNode, useMemo, useRef } from 'react';
import type { Distributed, RankSteps } from '../../../api/types.gen';
import { column } from '../../../core/columns';
import { type ExportTable, fileName } from '../../../core/export';
import { count, plural } from '../../../core/format';
import { useTheme } from '../../../host/theme';
import { useNavigation } from '../../../state/navigation';
import { useOption } from '../../../state/option';
import { Loaded } from '../../../widgets/loaded';
import { Picker } from '../../../widgets/picker';
import { type Segment, Segmented, useSegments } from '../../../widgets/segmented';
import { TableExport } from '../../../widgets/table_export';
import { type JobProps, useRanksQuery } from '../queries';
import { missingOf, rangesOf } from '../ranks';
import { SelectedRank } from '../selected_rank';
import { figure, gridOf, linesOf, type Norm, nameOfRow, type Order } from './grid';
import { HeatMap } from './heat_map';
import { signed, withMinus } from './labels';
import { METRICS, useMetric } from './metrics';
import type { Cells } from './raster';
import { rolesOf } from './roles';
import { ramp, type Scale, scaleOf } from './scale';
import { WorstTable } from './worst_table';

const ORDERS: readonly Segment<Order>[] = [
  { id: 'rank', label: 'By rank' },
  { id: 'excess', label: 'Worst first', title: 'By excess over the median of the step' },
  { id: 'node', label: 'By node' },
  { id: 'group', label: 'By group', title: 'By process group' },
];
const NORMS: readonly Segment<Norm>[] = [
  { id: 'absolute', label: 'Absolute', title: 'The value itself' },
  {
    id: 'median',
    label: '± median',
    title: 'The difference from the median rank of the same step',
  },
];

const useOrder = () => useOption<Order>('order', 'rank', ['rank', 'excess', 'node', 'group']);
const useNorm = () => useSegments<Norm>('norm', { label: 'Scale', segments: NORMS });

interface LegendProps {
  readonly scale: Scale;
  readonly unit: RankSteps['unit'];
  readonly isHighBad: boolean;
}

const STOPS = 16;

/** The colour scale with the values of its ends. */
function Legend({ scale, unit, isHighBad }: LegendProps): ReactNode {
  const theme = useTheme();
  const stops = useMemo(() => {
    const colours = ramp(scale.isDiverging, theme, isHighBad);
    const last = colours.length - 1;
    return Array.from({ length: STOPS + 1 }, (_, at) => colours[Math.round((at / STOPS) * last)]);
  }, [scale.isDiverging, theme, isHighBad]);
  const text = scale.isDiverging ? signed : withMinus;
  return (
    <div className="heat-legend wrap">
      <span>{`${scale.isCutLow ? '≤ ' : ''}${text(scale.low, unit)}`}</span>
      <span
        className="heat-ramp"
        style={{ background: `linear-gradient(to right, ${stops.join(', ')})` }}
        aria-hidden="true"
      />
      <span>{`${scale.isCutHigh ? '≥ ' : ''}${text(scale.high, unit)}`}</span>
      {scale.isDiverging && <span className="muted">difference from the median of the step</span>}
      <span className="heat-none" aria-hidden="true" />
      <span className="muted">not recorded</span>
    </div>
  );
}

interface MapProps extends JobProps {
  readonly steps: RankSteps;
  readonly isStale: boolean;
}

interface CellOptions {
  readonly missing: string;
  readonly groupOf: ReadonlyMap<number, number>;
}

function useCells(steps: RankSteps, { missing, groupOf }: CellOptions): Cells {
  const [order] = useOrder();
  const [norm] = useNorm();
  const grid = useMemo(() => gridOf(steps), [steps]);
  const scale = useMemo(
    () => scaleOf(grid, { norm, floor: steps.metric === 'late' ? 0 : null }),
    [grid, norm, steps.metric],
  );
  const lines = useMemo(
    () => linesOf(steps, grid, { order, missing: rangesOf(missing), groupOf }),
    [steps, grid, order, missing, groupOf],
  );
  return useMemo(
    () => ({ grid, lines, order, norm, scale, groupOf, isHighBad: steps.is_high_bad }),
    [grid, lines, order, norm, scale, groupOf, steps.is_high_bad],
  );
}

function exported(steps: RankSteps, { grid }: Cells): ExportTable {
  return {
    columns: [
      column('rank', 'Rank', 'text'),
      column('node', 'Node', 'text'),
      ...steps.steps.map((step) => column(`${step}`, `${steps.label} step ${step}`, steps.unit)),
    ],
    rows: steps.workers.map((_, row) => [
      nameOfRow(steps, row),
      steps.hosts[row] ?? null,
      ...steps.steps.map((_step, at) => {
        const value = figure(grid, row, at, 'absolute');
        return Number.isNaN(value) ? null : value;
      }),
    ]),
  };
}

function useLate({ stragglers }: Distributed, { workers }: RankSteps): ReadonlySet<number> {
  return useMemo(() => {
    const late = stragglers
      .filter((straggler) => straggler.is_straggler)
      .map((straggler) => straggler.worker);
    return new Set(late.map((worker) => workers.indexOf(worker)));
  }, [stragglers, workers]);
}

function FilledMap({ selection, summary, steps, isStale }: MapProps): ReactNode {
  const { location, go } = useNavigation();
  const box = useRef<HTMLDivElement>(null);
  const [order, setOrder] = useOrder();
  const [, norms] = useNorm();
  const areGroupsComplete = summary.groups.length >= summary.group_count;
  const groups = useMemo(
    () => rolesOf(summary.groups, areGroupsComplete ? 0 : summary.ranks.length),
    [summary.groups, summary.ranks, areGroupsComplete],
  );
  const [role, setRole] = useOption('role', groups.roles[0] ?? '', groups.roles);
  const groupOf = useMemo(() => groups.of(role), [groups, role]);
  const { ranks: missing } = missingOf(selection, summary);
  const cells = useCells(steps, { missing, groupOf });
  const late = useLate(summary, steps);
  const orders = ORDERS.filter(
    ({ id }) =>
      (id !== 'node' || summary.host_count > 1) && (id !== 'group' || groups.roles.length > 0),
  );
  const hasSteps = summary.steps.length > 0;
  const choose = (row: number, step: number): void =>
    go({ worker: steps.workers[row] ?? null, step: hasSteps ? step : null }, 'replace');
  const selectedRow = location.worker === null ? -1 : steps.workers.indexOf(location.worker);
  const name = [selection.run.name, 'ranks', steps.metric];
  return (
    <>
      <div className="heat-note">
        <p>{steps.help}</p>
        <Segmented label="Order of ranks" segments={orders} value={order} onChoose={setOrder} />
        {order === 'group' && groups.roles.length > 0 && (
          <Picker
            label="Groups"
            value={role}
            choices={groups.roles.map((straggler) => ({ key: straggler, label: straggler }))}
            onChoose={(next) => setRole(next)}
          />
        )}
        {norms}
        <TableExport
          note={`${steps.label} of all ranks and steps, in full precision.`}
          name={name}
          table={() => exported(steps, cells)}
          about={() => `${JSON.stringify(steps, null, 1)}\n`}
          picture={{
            element: box,
            title: `${steps.label} by rank and step`,
            subtitle: selection.run.name,
            file: fileName(name, 'png'),
          }}
        />
      </div>
      {steps.left_out_count > 0 && (
        <p className="muted">
          The last {count(steps.steps.length)} steps; {plural(steps.left_out_count, 'step')} before
          them {steps.left_out_count === 1 ? 'is' : 'are'} not shown.
        </p>
      )}
      {steps.empty === '' ? (
        <div ref={box} className={isStale ? 'heat-body stale' : 'heat-body'} aria-busy={isStale}>
          <HeatMap
            cells={cells}
            steps={steps}
            late={late}
            selectedRow={selectedRow < 0 ? null : selectedRow}
            selectedStep={location.step}
            onChoose={choose}
          >
            <SelectedRank summary={summary} />
          </HeatMap>
          <Legend scale={cells.scale} unit={steps.unit} isHighBad={steps.is_high_bad} />
          <WorstTable cells={cells} steps={steps} onChoose={choose} />
        </div>
      ) : (
        <p className="heat-empty">{steps.empty}</p>
      )}
    </>
  );
}

/** The heat map of ranks by steps. */
export function HeatCard({ selection, summary }: JobProps): ReactNode {
  const [metric, setMetric] = useMetric(summary);
  const query = useRanksQuery(selection, 'distributed/steps', { metric });
  return (
    <section className="card heat-card" aria-label="Ranks by step">
      <div className="heat-controls wrap">
        <Segmented label="Metric" segments={METRICS} value={metric} onChoose={setMetric} />
      </div>
      <Loaded query={query} what="The ranks by step">
        {(steps) => (
          <FilledMap
            selection={selection}
            summary={summary}
            steps={steps}
            isStale={query.isPlaceholderData}
          />
        )}
      </Loaded>
    </section>
  );
}
