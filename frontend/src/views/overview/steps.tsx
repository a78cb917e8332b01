import {
  lazy,
  type ReactNode,
  type RefObject,
  Suspense,
  useMemo,
  useState,
  useSyncExternalStore,
} from 'react';
import type { Overview, StepRow } from '../../api/types.gen';
import { count, duration, instant, plural, quantityExact, share } from '../../core/format';
import { themeStore } from '../../host/theme';
import type { TimeRange } from '../../state/location';
import { useNavigation } from '../../state/navigation';
import { columnsIn, columnsOf, timeOf } from './columns';

/** More rows than that nobody reads in a fold. */
const MOST_LISTED = 500;

const StepColumns = lazy(() => import('../../charts/step_columns'));

interface Props {
  readonly overview: Overview;
}

/** What the chosen step took. What the choice narrows, and how to let it go, stands above the view. */
function Chosen({ overview, step }: Props & { readonly step: StepRow }): ReactNode {
  const slower = step.duration_ns / overview.step.mean_ns - 1;
  return (
    <p className="chosen-step">
      <strong>{step.name}</strong> took{' '}
      <span title={quantityExact(step.duration_ns, 'ns')}>{duration(step.duration_ns)}</span>,{' '}
      {share(Math.abs(slower))} {slower < 0 ? 'less' : 'more'} than the mean.
    </p>
  );
}

/** The same numbers for those who cannot see the chart, or would rather read them. */
function StepTable({ overview }: Props): ReactNode {
  const { steps, categories } = overview;
  const { location, go } = useNavigation();
  const shown = categories
    .map((category, part) => ({ ...category, part }))
    .filter(({ part }) => steps.some((step) => (step.parts_ns[part] ?? 0) > 0));
  const [isOpen, setOpen] = useState(false);
  const choose = (step: StepRow, isRange: boolean): void => {
    const from = steps.find((each) => each.number === location.step);
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
        <table className="step-table">
          <thead>
            <tr>
              <th scope="col">Step</th>
              <th scope="col">Duration</th>
              {shown.map((category) => (
                <th key={category.id} scope="col" title={category.help}>
                  {category.label}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {steps.slice(0, MOST_LISTED).map((step) => (
              <tr
                key={step.number}
                aria-current={step.number === location.step ? 'true' : undefined}
              >
                <th scope="row">
                  <button
                    type="button"
                    title="Shift and press: from the chosen step to this one"
                    onClick={(event) => choose(step, event.shiftKey)}
                  >
                    {step.name}
                  </button>
                </th>
                <td title={quantityExact(step.duration_ns, 'ns')}>{duration(step.duration_ns)}</td>
                {shown.map(({ id, part }) => (
                  <td key={id} title={quantityExact(step.parts_ns[part], 'ns')}>
                    {duration(step.parts_ns[part] ?? 0)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}

function ChosenTime({ time }: { readonly time: TimeRange }): ReactNode {
  return (
    <p className="chosen-step">
      {duration(time.endNs - time.startNs)} chosen, from {instant(time.startNs)} to{' '}
      {instant(time.endNs)}.
    </p>
  );
}

interface StepsProps extends Props {
  /** Around the chart: what is taken along as a picture. */
  readonly chart: RefObject<HTMLDivElement | null>;
}

/** Step by step: is it every step, or a few? */
export function Steps({ overview, chart }: StepsProps): ReactNode {
  const { steps, categories } = overview;
  const { location, go } = useNavigation();
  const theme = useSyncExternalStore(themeStore.subscribe, themeStore.current);
  const columns = useMemo(() => columnsOf(steps), [steps]);
  if (steps.length === 0) return null;
  const chosen = steps.find((step) => step.number === location.step);
  const areTogether = columns.length < steps.length;
  const select = (number: number | null): void => {
    const column = columns.find((each) => each.number === number);
    if (column && areTogether) go({ time: timeOf(column, column) });
    else go({ step: number }, 'replace');
  };
  return (
    <section className="card">
      <div className="card-head">
        <h2>Step by step</h2>
        <p>
          {plural(steps.length, 'step')}
          {areTogether && ` in ${columns.length} columns of their mean`}; press one to narrow other
          views to it, draw over several for a time
        </p>
      </div>
      <div ref={chart}>
        <Suspense fallback={<div className="columns-chart" />}>
          <StepColumns
            steps={columns}
            categories={categories}
            selected={chosen?.number ?? null}
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
      {chosen && <Chosen overview={overview} step={chosen} />}
      {location.time && <ChosenTime time={location.time} />}
      <StepTable overview={overview} />
    </section>
  );
}
