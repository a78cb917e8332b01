import { lazy, type ReactNode, type RefObject, Suspense, useMemo, useState } from 'react';
import type { Overview, StepRow } from '../../api/types.gen';
import { count, duration, instant, plural, quantityExact } from '../../core/format';
import { useTheme } from '../../host/theme';
import { useNavigation } from '../../state/navigation';
import { Card } from '../../widgets/card';
import { type PlainColumn, PlainTable } from '../../widgets/plain_table';
import { columnsIn, columnsOf, timeOf } from './columns';

/** Most rows of the table. */
const MOST_LISTED = 500;

const StepColumns = lazy(() => import('../../charts/step_columns'));

interface Props {
  readonly overview: Overview;
}

/** The values of the chart as a table. */
function StepTable({ overview }: Props): ReactNode {
  const { steps, categories } = overview;
  const { location, go } = useNavigation();
  const shown = categories
    .map((category, part) => ({ ...category, part }))
    .filter(({ part }) => steps.some((step) => (step.parts_ns[part] ?? 0) > 0));
  const [isOpen, setOpen] = useState(false);
  const choose = (step: StepRow, isRange: boolean): void => {
    const from = steps.find(({ number }) => number === location.step);
    if (isRange && from) {
      const [first, last] = from.host_start_ns < step.host_start_ns ? [from, step] : [step, from];
      go({ time: { startNs: first.host_start_ns, endNs: last.host_end_ns } });
    } else go({ step: step.number }, 'replace');
  };
  return (
    <details className="as-table" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>As a table</summary>
      {steps.length > MOST_LISTED && <p className="muted">The first {count(MOST_LISTED)} steps.</p>}
      <div className="scroll-x" hidden={!isOpen && steps.length > MOST_LISTED}>
        <PlainTable
          className="plain step-table"
          rows={steps.slice(0, MOST_LISTED)}
          keyOf={({ number }) => number}
          rowProps={({ number }) => ({
            'aria-current': number === location.step ? 'true' : undefined,
          })}
          columns={[
            {
              label: 'Step',
              isHeader: true,
              cell: (step) => (
                <button
                  type="button"
                  title="Shift + click selects the range from the selected step"
                  onClick={(event) => choose(step, event.shiftKey)}
                >
                  {step.name}
                </button>
              ),
            },
            {
              label: 'Duration',
              title: ({ duration_ns }) => quantityExact(duration_ns, 'ns'),
              cell: ({ duration_ns }) => duration(duration_ns),
            },
            ...shown.map(
              ({ label, help, part }): PlainColumn<StepRow> => ({
                label: <span title={help}>{label}</span>,
                title: ({ parts_ns }) => quantityExact(parts_ns[part], 'ns'),
                cell: ({ parts_ns }) => duration(parts_ns[part] ?? 0),
              }),
            ),
          ]}
        />
      </div>
    </details>
  );
}

interface StepsProps extends Props {
  /** Receives the chart, for exports. */
  readonly chart: RefObject<HTMLDivElement | null>;
}

/** The steps as columns and as a table. */
export function Steps({ overview, chart }: StepsProps): ReactNode {
  const { steps, categories } = overview;
  const { location, go } = useNavigation();
  const { time } = location;
  const theme = useTheme();
  const columns = useMemo(() => columnsOf(steps), [steps]);
  if (steps.length === 0) return null;
  const selected = steps.find((step) => step.number === location.step);
  const isGrouped = columns.length < steps.length;
  const select = (number: number | null): void => {
    const column = columns.find((other) => other.number === number);
    if (column && isGrouped) go({ time: timeOf(column, column) });
    else go({ step: number }, 'replace');
  };
  return (
    <Card
      title="Steps"
      note={`${plural(steps.length, 'step')}${isGrouped ? ` in ${columns.length} columns of their mean` : ''}; click one to filter all views to it, drag over several for a time range`}
    >
      <div ref={chart}>
        <Suspense fallback={<div className="columns-chart" />}>
          <StepColumns
            steps={columns}
            categories={categories}
            selected={selected?.number ?? null}
            onSelect={select}
            range={columnsIn(columns, location.time)}
            onRange={(first, last) => {
              const [from, to] = [columns[first], columns[last]];
              if (from && to) go({ time: timeOf(from, to) });
            }}
            theme={theme}
          />
        </Suspense>
      </div>
      {time && (
        <p className="chosen-step">
          {duration(time.endNs - time.startNs)} selected, from {instant(time.startNs)} to{' '}
          {instant(time.endNs)}.
        </p>
      )}
      <StepTable overview={overview} />
    </Card>
  );
}
