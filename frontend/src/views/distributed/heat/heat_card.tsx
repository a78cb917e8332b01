import { type ReactNode, useMemo, useRef } from 'react';
import type { Distributed, RankSteps } from '../../../api/types.gen';
import { column } from '../../../core/columns';
import { type ExportTable, fileName } from '../../../core/export';
import { count, plural } from '../../../core/format';
import { useNavigation } from '../../../state/navigation';
import { useOption } from '../../../state/option';
import type { Selection } from '../../../state/selection';
import { ExportMenu } from '../../../widgets/export_menu';
import { Loaded } from '../../../widgets/loaded';
import { Picker } from '../../../widgets/picker';
import { saveTable } from '../../../widgets/save_table';
import { Segmented } from '../../../widgets/segmented';
import { Chosen } from '../chosen';
import { missingOf } from '../missing';
import { rangesOf } from '../names';
import { useRanksAnswer } from '../queries';
import { figure, gridOf, linesOf, type Norm, nameOfRow, type Order } from './grid';
import { HeatMap } from './heat_map';
import { Legend } from './legend';
import { METRICS, useMetric } from './metrics';
import type { Cells } from './raster';
import { rolesOf } from './roles';
import { scaleOf } from './scale';
import { WorstTable } from './worst_table';

const ORDERS: readonly { id: Order; label: string; title: string }[] = [
  { id: 'rank', label: 'By rank', title: 'Rank by rank' },
  { id: 'excess', label: 'Worst first', title: 'By how much worse than the step’s median' },
  { id: 'node', label: 'By node', title: 'Node by node' },
  { id: 'group', label: 'By group', title: 'Process group by process group' },
];
const NORMS: readonly { id: Norm; label: string; title: string }[] = [
  { id: 'absolute', label: 'As it is', title: 'The figure itself' },
  { id: 'median', label: '± median', title: 'What it has beyond the median rank of the same step' },
];

const useOrder = () => useOption<Order>('order', 'rank', ['rank', 'excess', 'node', 'group']);
const useNorm = () => useOption<Norm>('norm', 'absolute', ['absolute', 'median']);

interface Props {
  readonly selection: Selection;
  readonly summary: Distributed;
}

interface MapProps extends Props {
  readonly steps: RankSteps;
  readonly isStale: boolean;
}

interface CellsAsked {
  readonly missing: string;
  readonly groupOf: ReadonlyMap<number, number>;
}

function useCells(steps: RankSteps, { missing, groupOf }: CellsAsked): Cells {
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
    const late = stragglers.filter((each) => each.is_straggler).map((each) => each.worker);
    return new Set(late.map((worker) => workers.indexOf(worker)));
  }, [stragglers, workers]);
}

function FilledMap({ selection, summary, steps, isStale }: MapProps): ReactNode {
  const { location, go } = useNavigation();
  const box = useRef<HTMLDivElement>(null);
  const [order, setOrder] = useOrder();
  const [norm, setNorm] = useNorm();
  const areAllTold = summary.groups.length >= summary.group_count;
  const groups = useMemo(
    () => rolesOf(summary.groups, areAllTold ? 0 : summary.ranks.length),
    [summary.groups, summary.ranks, areAllTold],
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
  const chosen = location.worker === null ? -1 : steps.workers.indexOf(location.worker);
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
            choices={groups.roles.map((each) => ({ key: each, label: each }))}
            onChoose={(next) => setRole(next)}
          />
        )}
        <Segmented label="Scale" segments={NORMS} value={norm} onChoose={setNorm} />
        <ExportMenu
          note={`${steps.label} of every rank and step, in full precision.`}
          onExport={(format) => {
            saveTable({
              name,
              format,
              table: exported(steps, cells),
              about: () => `${JSON.stringify(steps, null, 1)}\n`,
            });
          }}
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
            chosenRow={chosen < 0 ? null : chosen}
            chosenStep={location.step}
            onChoose={choose}
          >
            <Chosen summary={summary} />
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

/** Rank by step: which rank is slow, and since when. */
export function HeatCard({ selection, summary }: Props): ReactNode {
  const [metric, setMetric] = useMetric(summary);
  const query = useRanksAnswer<RankSteps>(selection, 'distributed/steps', { metric });
  return (
    <section className="card heat-card" aria-label="Ranks by step">
      <div className="heat-controls">
        <Segmented label="Figure" segments={METRICS} value={metric} onChoose={setMetric} />
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
