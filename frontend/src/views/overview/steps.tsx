import { lazy, type ReactNode, Suspense, useMemo, useSyncExternalStore } from 'react';
import type { Overview, StepRow } from '../../api/types.gen';
import { duration, plural, quantityExact, share } from '../../core/format';
import { themeStore } from '../../host/theme';
import { useNavigation } from '../../state/navigation';

const StepColumns = lazy(() => import('../../charts/step_columns'));

interface Props {
  readonly overview: Overview;
}

function Chosen({ overview, step }: Props & { readonly step: StepRow }): ReactNode {
  const { go } = useNavigation();
  const slower = step.duration_ns / overview.step.mean_ns - 1;
  return (
    <p className="chosen-step">
      <span>
        <strong>{step.name}</strong> took{' '}
        <span title={quantityExact(step.duration_ns, 'ns')}>{duration(step.duration_ns)}</span>,{' '}
        {share(Math.abs(slower))} {slower < 0 ? 'less' : 'more'} than the mean.
      </span>
      <button type="button" className="button quiet" onClick={() => go({ step: null }, 'replace')}>
        Let go
      </button>
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
  return (
    <details className="as-table">
      <summary>As a table</summary>
      <div className="scroll-x">
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
            {steps.map((step) => (
              <tr
                key={step.number}
                aria-current={step.number === location.step ? 'true' : undefined}
              >
                <th scope="row">
                  <button type="button" onClick={() => go({ step: step.number }, 'replace')}>
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

/** Step by step: is it every step, or a few? */
export function Steps({ overview }: Props): ReactNode {
  const { steps, categories } = overview;
  const { location, go } = useNavigation();
  const theme = useSyncExternalStore(themeStore.subscribe, themeStore.current);
  const columns = useMemo(
    () => steps.map(({ number, name, parts_ns }) => ({ number, name, partsNs: parts_ns })),
    [steps],
  );
  if (steps.length === 0) return null;
  const chosen = steps.find((step) => step.number === location.step);
  return (
    <section className="card">
      <div className="card-head">
        <h2>Step by step</h2>
        <p>{plural(steps.length, 'step')}; choose a column to mark it</p>
      </div>
      <Suspense fallback={<div className="columns-chart" />}>
        <StepColumns
          steps={columns}
          categories={categories}
          selected={chosen?.number ?? null}
          onSelect={(step) => go({ step }, 'replace')}
          theme={theme}
        />
      </Suspense>
      {chosen && <Chosen overview={overview} step={chosen} />}
      <StepTable overview={overview} />
    </section>
  );
}
