import type { ReactNode } from 'react';
import type { BudgetLine, RunReport, WorkerReport } from '../../api/types.gen';
import { StackedBar } from '../../charts/stacked_bar';
import { categoryWords } from '../../core/categories';
import {
  count,
  duration,
  durationRange,
  plural,
  quantityExact,
  share,
  unbroken,
} from '../../core/format';
import { useRecordings } from './place';

function Facts({ worker }: { readonly worker: WorkerReport }): ReactNode {
  const { step, devices, events } = worker;
  const hasSteps = step.count > 0;
  return (
    <dl className="facts">
      <div title={quantityExact(step.mean_ns, 'ns')}>
        <dt>{hasSteps ? 'Mean step' : 'Window'}</dt>
        <dd>
          {duration(step.mean_ns)}
          {step.count > 1 && <small> ± {duration(step.standard_deviation_ns)}</small>}
        </dd>
      </div>
      <div>
        <dt>Steps</dt>
        <dd>{hasSteps ? count(step.count) : <small>none recorded</small>}</dd>
      </div>
      {devices.slice(0, 2).map((device) => (
        <div key={device.id} title={device.name}>
          <dt>{device.name}</dt>
          <dd>
            {share(device.busy_share)} <small>busy</small>
          </dd>
        </div>
      ))}
      {devices.length > 2 && (
        <div>
          <dt>Others</dt>
          <dd>
            <small>{plural(devices.length - 2, 'more device')}</small>
          </dd>
        </div>
      )}
      <div>
        <dt>Events</dt>
        <dd>{count(events)}</dd>
      </div>
    </dl>
  );
}

function BudgetRow({ line, of }: { readonly line: BudgetLine; readonly of: number }): ReactNode {
  const won = line.recoverable_high_ns;
  const rules = line.rules.join(', ');
  return (
    <tr>
      <th scope="row">{line.label}</th>
      <td className="number" title={quantityExact(line.time_ns, 'ns')}>
        {duration(line.time_ns)}
      </td>
      <td className="number">{share(line.share)}</td>
      <td className="number" title={won > 0 ? quantityExact(won, 'ns') : undefined}>
        {won > 0 ? durationRange(line.recoverable_low_ns, won) : <span className="muted">–</span>}
      </td>
      <td className="budget-track" aria-hidden="true">
        <span className="budget-time" style={{ width: `${(line.time_ns / of) * 100}%` }} />
        <span className="budget-won" style={{ width: `${(won / of) * 100}%` }} />
      </td>
      <td className="muted">{rules}</td>
    </tr>
  );
}

/** Where the step's time goes; the lines sum to it; and how much of each could be won back. */
function Budget({ worker }: { readonly worker: WorkerReport }): ReactNode {
  const { budget, step } = worker;
  const [low, high] = [
    budget.reduce((sum, line) => sum + line.recoverable_low_ns, 0),
    budget.reduce((sum, line) => sum + line.recoverable_high_ns, 0),
  ];
  if (budget.length === 0) return null;
  return (
    <details className="budget">
      <summary>
        {high > 0
          ? `Of it ${durationRange(low, high)} (${share(high / step.mean_ns)}) could be won back`
          : 'Nothing of it could be won back by what was looked for'}
      </summary>
      <table className="plain">
        <thead>
          <tr>
            <th scope="col">Part</th>
            <th scope="col" className="number">
              Time
            </th>
            <th scope="col" className="number">
              Share
            </th>
            <th scope="col" className="number">
              Recoverable
            </th>
            <th>
              <span className="visually-hidden">As a bar</span>
            </th>
            <th scope="col">By</th>
          </tr>
        </thead>
        <tbody>
          {budget.map((line) => (
            <BudgetRow key={line.category} line={line} of={step.mean_ns} />
          ))}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row">{step.count > 0 ? 'Mean step' : 'Window'}</th>
            <td className="number">{duration(step.mean_ns)}</td>
            <td className="number">{share(1)}</td>
            <td className="number">{high > 0 ? durationRange(low, high) : '–'}</td>
            <td />
            <td />
          </tr>
        </tfoot>
      </table>
    </details>
  );
}

interface Props {
  readonly worker: WorkerReport;
  readonly run: RunReport;
  /** The part of the step whose findings are shown; null: all. */
  readonly part: string | null;
  readonly onPart: (part: string | null) => void;
}

/** The sentence that says it all, the mean step as one bar, and what of it could be won back. */
export function Verdict({ worker, run, part, onPart }: Props): ReactNode {
  const { step } = worker;
  const isOneOfMany = useRecordings().length > 1;
  const parts = Object.entries(step.breakdown_ns).map(([id, valueNs]) => ({
    id,
    ...categoryWords(id),
    valueNs,
  }));
  return (
    <section className="card verdict" aria-label="Verdict">
      <div className="verdict-head">
        <div>
          {isOneOfMany && <p className="verdict-run">{run.verdict}</p>}
          <p className="verdict-words">{unbroken(worker.verdict)}</p>
        </div>
        <Facts worker={worker} />
      </div>
      <StackedBar
        parts={parts}
        totalNs={step.mean_ns}
        whole={step.count > 0 ? 'mean step' : 'recorded window'}
        chosen={part}
        onChoose={onPart}
      />
      <Budget worker={worker} />
    </section>
  );
}
