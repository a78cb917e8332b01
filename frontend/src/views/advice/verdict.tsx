import type { ReactNode } from 'react';
import type { BudgetLine, RunReport, WorkerReport } from '../../api/types.gen';
import { type Part, StackedBar } from '../../charts/stacked_bar';
import {
  count,
  duration,
  durationRange,
  plural,
  quantityExact,
  share,
  shareRange,
  unbroken,
} from '../../core/format';
import { type Fact, Facts } from '../../widgets/facts';
import { PlainTable } from '../../widgets/plain_table';
import { useTraceRefs } from './links';

function factsOf({ step, devices, events }: WorkerReport): Fact[] {
  const hasSteps = step.count > 0;
  return [
    [
      hasSteps ? 'Mean step' : 'Window',
      <>
        {duration(step.mean_ns)}
        {step.count > 1 && <small> ± {duration(step.standard_deviation_ns)}</small>}
      </>,
      quantityExact(step.mean_ns, 'ns'),
    ],
    ['Steps', hasSteps ? count(step.count) : <small key="steps">none recorded</small>],
    ...devices.slice(0, 2).map(
      ({ name, busy_share }): Fact => [
        `${name} busy`,
        <span key={name}>
          {share(busy_share)} <small>of the time</small>
        </span>,
        name,
      ],
    ),
    devices.length > 2 && [
      'Others',
      <small key="others">{plural(devices.length - 2, 'more device')}</small>,
    ],
    ['Events', count(events)],
  ];
}

/** The parts of the step, which sum to it, with the potential saving of each. */
function Budget({ worker }: { readonly worker: WorkerReport }): ReactNode {
  const { budget, step, saving } = worker;
  if (budget.length === 0) return null;
  const whole: BudgetLine = {
    category: '',
    label: step.count > 0 ? 'Mean step' : 'Window',
    time_ns: step.mean_ns,
    share: 1,
    recoverable_low_ns: saving?.low_ns ?? 0,
    recoverable_high_ns: saving?.high_ns ?? 0,
    rules: [],
    meaning: '',
  };
  const { unrecorded } = step;
  const of = unrecorded ? ' of an unrecorded step' : '';
  const ofStep = step.count > 0 ? of.trim() || 'of the step' : 'of the window';
  const width = (ns: number) => ({ width: `${(ns / step.mean_ns) * 100}%` });
  return (
    <details className="budget">
      <summary className="strong">
        {saving
          ? `Potential saving: ${shareRange(saving.low_share, saving.high_share)} ${ofStep} (${durationRange(saving.low_ns, saving.high_ns)})`
          : 'The checks found no potential saving'}
      </summary>
      <PlainTable
        rows={budget}
        total={whole}
        keyOf={({ category }) => category}
        columns={[
          { label: 'Part', isHeader: true, cell: ({ label }) => label },
          {
            label: 'Time',
            isNumber: true,
            title: ({ time_ns }) => quantityExact(time_ns, 'ns'),
            cell: ({ time_ns }) => duration(time_ns),
          },
          {
            label: step.count > 0 ? 'Of the step' : 'Of the window',
            isNumber: true,
            cell: (line) => share(line.share),
          },
          {
            label: `Potential saving${of}`,
            isNumber: true,
            cell: ({ recoverable_low_ns: least, recoverable_high_ns: most }) =>
              most > 0 ? durationRange(least, most) : <span className="muted">–</span>,
          },
          {
            label: <span className="visually-hidden">As a bar</span>,
            className: 'budget-track',
            cell: (line) =>
              line !== whole && (
                <span aria-hidden="true">
                  <span className="budget-time" style={width(line.time_ns)} />
                  <span className="budget-won" style={width(line.recoverable_high_ns)} />
                </span>
              ),
          },
          { label: 'Rules', className: 'muted', cell: ({ rules }) => rules.join(', ') },
        ]}
      />
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

/** The mean step by category. */
export const partsOf = ({ budget }: WorkerReport): Part[] =>
  budget.map(({ category: id, label, meaning, time_ns }) => ({
    id,
    label,
    help: meaning,
    valueNs: time_ns,
  }));

/** The verdict, the mean step as one bar, and its potential saving. */
export function Verdict({ worker, run, part, onPart }: Props): ReactNode {
  const { step } = worker;
  const isOneOfSeveral = useTraceRefs().length > 1;
  return (
    <section className="card verdict" aria-label="Verdict">
      <div className="verdict-head">
        <div>
          {isOneOfSeveral && <p className="verdict-run">{run.verdict}</p>}
          <p className="verdict-words headline">{unbroken(worker.verdict)}</p>
        </div>
        <Facts className="facts" facts={factsOf(worker)} />
      </div>
      <StackedBar
        parts={partsOf(worker)}
        totalNs={step.mean_ns}
        whole={step.count > 0 ? 'mean step' : 'recorded window'}
        chosen={part}
        onChoose={onPart}
      />
      <Budget worker={worker} />
    </section>
  );
}
