import { type ReactNode, useMemo } from 'react';
import { useTraceQuery } from '../../api/queries';
import type { MemoryGrowth, Table } from '../../api/types.gen';
import type { Line } from '../../charts/time_series_types';
import { MEMORY_COLOURS } from '../../core/colour';
import { bytes, count, plural, quantity, quantityExact } from '../../core/format';
import { useNavigation } from '../../state/navigation';
import { withOptions } from '../../state/option';
import { Goto } from '../../widgets/goto';
import { Icon } from '../../widgets/icon';
import { Loaded } from '../../widgets/loaded';
import { type PlainColumn, PlainTable } from '../../widgets/plain_table';
import { StackList } from '../../widgets/stack_list';
import { DataTable } from '../../widgets/table';
import { cellOf } from '../../widgets/table/rows';
import { ALLOCATED, AXIS_FORMAT, LegendKey, MemoryChart } from './chart';
import { type MemoryScope, traceNames } from './scope';

const LEFT = MEMORY_COLOURS.left;

/** The sentence about the slope over the steps. */
export function verdictOf(growth: MemoryGrowth): string {
  const { step_count, growth_bytes, least_growth_bytes, most_growth_bytes, confidence } = growth;
  if (growth_bytes === null || step_count < 2) {
    return `Growth is inconclusive: not enough complete steps (needs 2, has ${count(step_count)}).`;
  }
  const ends = growth.total_growth_bytes ?? 0;
  if (confidence === 'none') {
    return ends === 0
      ? `Over ${plural(step_count, 'step')} memory does not grow: the last step ends with as much as the first.`
      : `Over ${plural(step_count, 'step')} memory does not grow steadily; the last step ends with ${bytes(Math.abs(ends))} ${ends > 0 ? 'more' : 'less'} than the first.`;
  }
  const between =
    least_growth_bytes === null || most_growth_bytes === null
      ? ''
      : ` (95 %: ${bytes(least_growth_bytes)} to ${bytes(most_growth_bytes)})`;
  const until =
    growth.full_after_step_count === null
      ? ''
      : ` At that rate the device is full after ${count(Math.round(growth.full_after_step_count))} more steps.`;
  return `Memory grows by ${bytes(growth_bytes)} per step${between}, with ${confidence} confidence.${until}`;
}

const numbers = (table: Table, key: string): (number | null)[] =>
  Array.from({ length: table.row_count }, (_, at) => {
    const value = cellOf(table, key, at);
    return typeof value === 'number' ? value : null;
  });

/** Growth since the first step, and memory that each step leaves allocated. */
function linesOf(steps: Table): Line[] {
  const ends = numbers(steps, 'end_bytes');
  const first = ends.find((end) => end !== null) ?? 0;
  const more = ends.map((end) => (end === null ? null : end - first));
  return [
    { id: 'end', label: 'Grown since the first step', colour: ALLOCATED, values: more },
    { id: 'left', label: 'Left allocated', colour: LEFT, values: numbers(steps, 'left_bytes') },
  ];
}

const STEP_FORMAT = {
  ...AXIS_FORMAT,
  tickX: (value: number) => (Number.isInteger(value) ? String(value) : ''),
  x: (value: number) => `Step ${value}`,
};

function StepChart({ steps }: { readonly steps: Table }): ReactNode {
  const { go } = useNavigation();
  const series = useMemo(
    () => ({ xs: numbers(steps, 'step').map((step) => step ?? 0), lines: linesOf(steps) }),
    [steps],
  );
  return (
    <MemoryChart
      {...series}
      words={STEP_FORMAT}
      label="Memory by step: growth since the end of the first step, and memory that the step leaves allocated"
      height={190}
      onPick={(x) => go({ step: Math.round(x), time: null }, 'replace')}
    />
  );
}

function StepTable({ steps }: { readonly steps: Table }): ReactNode {
  return (
    <details className="as-table">
      <summary>As a table</summary>
      <div className="scroll-x">
        <PlainTable
          rows={Array.from({ length: steps.row_count }, (_, at) => at)}
          keyOf={(at) => at}
          columns={steps.columns
            .filter(({ key }) => key !== 'start_ns' && key !== 'end_ns')
            .map(
              ({ key, label, help, unit }): PlainColumn<number> => ({
                label: <span title={help}>{label}</span>,
                isNumber: true,
                title: (at) => quantityExact(cellOf(steps, key, at), unit),
                cell: (at) => quantity(cellOf(steps, key, at), unit),
              }),
            )}
        />
      </div>
    </details>
  );
}

const KEYS = [
  ['Growth since the end of the first step', ALLOCATED],
  ['Allocated in the step and never freed', LEFT],
] as const;

/** Growth of memory over the steps, and suspected leaks. */
export function Growth({ scope }: { readonly scope: MemoryScope }): ReactNode {
  const { location } = useNavigation();
  const { device, selection } = scope;
  const query = useTraceQuery(selection.span.trace, 'memory/growth', { device });
  return (
    <div className="memory-part column grow memory-scroll">
      <Loaded query={query} what="Growth">
        {(growth) => (
          <>
            <section className="memory-growth" aria-label="Growth">
              <p className={`memory-verdict flex memory-verdict-${growth.confidence}`}>
                <Icon name={growth.confidence === 'none' ? 'passed' : 'warning'} size={16} />{' '}
                {verdictOf(growth)}
              </p>
              <p className="memory-legend wrap">
                {KEYS.map(([label, colour]) => (
                  <LegendKey key={label} label={label} colour={colour} />
                ))}
                <span className="space" />
                <Goto
                  to={{
                    search: '',
                    sort: null,
                    options: withOptions(location.options, {
                      row: null,
                      tab: 'allocations',
                      state: 'held',
                    }),
                  }}
                >
                  All allocations never freed <Icon name="arrow" size={13} />
                </Goto>
              </p>
              <StepChart steps={growth.steps} />
              <StepTable steps={growth.steps} />
            </section>
            {growth.leaks.row_count === 0 ? (
              <p className="memory-none flex">
                <Icon name="passed" size={15} /> No operator, module and stack leaves allocations
                behind in every step.
              </p>
            ) : (
              <div className="memory-leaks column">
                <DataTable
                  table={growth.leaks}
                  name="memory-leaks"
                  label="Suspected leaks"
                  traceName={traceNames(scope)}
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
