import { lazy, type ReactNode, Suspense, useMemo, useSyncExternalStore } from 'react';
import { useTraceAnswer } from '../../api/queries';
import type { MemoryGrowth, Table } from '../../api/types.gen';
import type { Line } from '../../charts/time_series';
import { MEMORY_COLOURS } from '../../core/colour';
import { bytes, count, plural, quantity, quantityExact } from '../../core/format';
import { themeStore } from '../../host/theme';
import { useNavigation } from '../../state/navigation';
import { withOption } from '../../state/option';
import { Goto } from '../../widgets/goto';
import { Icon } from '../../widgets/icon';
import { Loaded } from '../../widgets/loaded';
import { StackList } from '../../widgets/stack_list';
import { DataTable } from '../../widgets/table';
import { cellOf } from '../../widgets/table/rows';
import { ALLOCATED, WORDS } from './curve';
import type { Asked } from './memory';

const TimeSeries = lazy(() => import('../../charts/time_series'));
const LEFT = MEMORY_COLOURS.left;

/** What the slope over the steps says, in a sentence. */
export function verdictOf(growth: MemoryGrowth): string {
  const { step_count, growth_bytes, least_growth_bytes, most_growth_bytes, confidence } = growth;
  if (growth_bytes === null || step_count < 2) {
    return `${plural(step_count, 'complete step')}: too few to tell whether memory grows.`;
  }
  const ends = growth.total_growth_bytes ?? 0;
  if (confidence === 'none') {
    return ends === 0
      ? `Over ${plural(step_count, 'step')} memory does not grow: the last ends with as much as the first.`
      : `Over ${plural(step_count, 'step')} memory does not grow steadily; the last ends with ${bytes(Math.abs(ends))} ${ends > 0 ? 'more' : 'less'} than the first.`;
  }
  const between =
    least_growth_bytes === null || most_growth_bytes === null
      ? ''
      : ` (95 %: ${bytes(least_growth_bytes)} to ${bytes(most_growth_bytes)})`;
  const until =
    growth.full_after_step_count === null
      ? ''
      : ` At that rate the device is full after ${count(Math.round(growth.full_after_step_count))} more steps.`;
  return `Memory grows by ${bytes(growth_bytes)} a step${between}, with ${confidence} confidence.${until}`;
}

const numbers = (table: Table, key: string): (number | null)[] =>
  Array.from({ length: table.row_count }, (_, at) => {
    const value = cellOf(table, key, at);
    return typeof value === 'number' ? value : null;
  });

/** What the steps end with, more than the first of them, and what each left behind. */
function linesOf(steps: Table): Line[] {
  const ends = numbers(steps, 'end_bytes');
  const first = ends.find((end) => end !== null) ?? 0;
  const more = ends.map((end) => (end === null ? null : end - first));
  return [
    { id: 'end', label: 'Grown since the first step', colour: ALLOCATED, values: more },
    { id: 'left', label: 'Left by it', colour: LEFT, values: numbers(steps, 'left_bytes') },
  ];
}

function StepChart({ steps }: { readonly steps: Table }): ReactNode {
  const theme = useSyncExternalStore(themeStore.subscribe, themeStore.current);
  const { go } = useNavigation();
  const drawn = useMemo(
    () => ({ xs: numbers(steps, 'step').map((step) => step ?? 0), lines: linesOf(steps) }),
    [steps],
  );
  const words = useMemo(
    () => ({
      ...WORDS,
      tickX: (value: number) => (Number.isInteger(value) ? String(value) : ''),
      x: (value: number) => `Step ${value}`,
    }),
    [],
  );
  return (
    <Suspense fallback={<div style={{ height: 190 }} />}>
      <TimeSeries
        {...drawn}
        words={words}
        label="Memory by step: how much more there is at its end than at the first step’s, and what it left behind"
        height={190}
        theme={theme}
        onPick={(x) => go({ step: Math.round(x), time: null }, 'replace')}
      />
    </Suspense>
  );
}

/** The same numbers for those who would rather read them. */
function StepTable({ steps }: { readonly steps: Table }): ReactNode {
  const columns = steps.columns.filter(({ key }) => key !== 'start_ns' && key !== 'end_ns');
  const rows = Array.from({ length: steps.row_count }, (_, at) => at);
  return (
    <details className="as-table">
      <summary>As a table</summary>
      <div className="scroll-x">
        <table className="plain">
          <thead>
            <tr>
              {columns.map((column) => (
                <th key={column.key} scope="col" title={column.help} className="number">
                  {column.label}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((at) => (
              <tr key={at}>
                {columns.map((column) => {
                  const value = cellOf(steps, column.key, at);
                  return (
                    <td
                      key={column.key}
                      className="number"
                      title={quantityExact(value, column.unit)}
                    >
                      {quantity(value, column.unit)}
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}

const KEYS = [
  ['At the step’s end, more than at the first’s', ALLOCATED],
  ['Left by it to the recording’s end', LEFT],
] as const;

/** Whether memory grows from step to step, and whose allocations stay behind. */
export function Growth({ asked }: { readonly asked: Asked }): ReactNode {
  const { location } = useNavigation();
  const { device, selection } = asked;
  const { run, worker, span } = selection;
  const query = useTraceAnswer<MemoryGrowth>(span.trace, 'memory/growth', { device });
  return (
    <div className="memory-part memory-scroll">
      <Loaded query={query} what="Growth">
        {(growth) => (
          <>
            <section className="memory-growth" aria-label="Growth">
              <p className={`memory-verdict memory-verdict-${growth.confidence}`}>
                <Icon name={growth.confidence === 'none' ? 'passed' : 'warning'} size={16} />{' '}
                {verdictOf(growth)}
              </p>
              <p className="memory-legend">
                {KEYS.map(([label, colour]) => (
                  <span key={label} className="memory-key">
                    <span className="swatch" style={{ background: colour }} /> {label}
                  </span>
                ))}
                <span className="space" />
                <Goto
                  to={{
                    search: '',
                    sort: null,
                    options: {
                      ...withOption(location.options, 'row', null),
                      tab: 'allocations',
                      state: 'held',
                    },
                  }}
                >
                  All that is held to the end <Icon name="arrow" size={13} />
                </Goto>
              </p>
              <StepChart steps={growth.steps} />
              <StepTable steps={growth.steps} />
            </section>
            {growth.leaks.row_count === 0 ? (
              <p className="memory-none">
                <Icon name="passed" size={15} /> No allocations of one operator, module and stack
                stay behind in step after step.
              </p>
            ) : (
              <div className="memory-leaks">
                <DataTable
                  table={growth.leaks}
                  name="memory-leaks"
                  label="Suspected leaks"
                  recording={[run.name, worker.name, span.label, device]}
                  isStale={query.isPlaceholderData}
                  identity={['operator', 'module', 'stack']}
                  details={(at) => {
                    const stack = cellOf(growth.leaks, 'stack', at);
                    return typeof stack === 'string' ? <StackList stack={stack} /> : null;
                  }}
                />
              </div>
            )}
          </>
        )}
      </Loaded>
    </div>
  );
}
