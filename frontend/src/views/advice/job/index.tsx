import { type ReactNode, useMemo, useSyncExternalStore } from 'react';
import type { MergedOutcome, RunReport, RunState } from '../../../api/types.gen';
import { markdownText } from '../../../core/export';
import { count, duration, plural, shareRange } from '../../../core/format';
import { dailySaving, hoursWords, type JobTerms, moneyWords } from '../../../core/job_saving';
import { spansOf } from '../../../core/progress';
import { traceRefsOf } from '../../../core/traces';
import { Button } from '../../../widgets/button';
import { Empty } from '../../../widgets/empty';
import { type Fact, Facts } from '../../../widgets/facts';
import { Fold } from '../../../widgets/fold';
import { ViewHeader } from '../../../widgets/view_header';
import { dismissals, keyOf } from '../dismissed';
import { AdviceExport } from '../export';
import { ReportProvider } from '../links';
import { findingMarkdown } from '../markdown';
import { useOpenFindings } from '../opened';
import { JobOutlook } from '../outlook';
import { usePrinting } from '../printing';
import { JobFinding } from './finding';
import { Incomplete } from './incomplete';
import { Terms, useTerms } from './terms';
import './job.css';

interface Props {
  readonly report: RunReport;
  readonly run: RunState;
  /** Switches between the job and one of its ranks. */
  readonly choice: ReactNode;
}

interface VerdictProps extends Pick<Props, 'report' | 'run'> {
  readonly terms: JobTerms;
}

const readyOf = (run: RunState): number =>
  spansOf(run).filter(({ state }) => state === 'ready').length;

function factsOf({ report, run, terms }: VerdictProps): Fact[] {
  const { job } = report;
  const daily = job?.total ? dailySaving(job.total, terms) : null;
  const money = daily ? moneyWords(daily) : '';
  const ready = readyOf(run);
  const all = spansOf(run).length;
  return [
    job && job.step_ns > 0 && ['Step of the job', duration(job.step_ns), 'The longest mean step'],
    [
      'Traces',
      <>
        {count(ready)}
        {ready < all && <small> of {count(all)}</small>}
      </>,
    ],
    job?.total && [
      'Potential saving',
      `${shareRange(job.total.low_share, job.total.high_share)} of the step`,
      job.method,
    ],
    daily && ['Potential saving per day', hoursWords(daily), job?.method],
    money !== '' && ['Cost saving per day', money, job?.method],
  ];
}

function Verdict({ report, run, terms }: VerdictProps): ReactNode {
  const { job } = report;
  return (
    <section className="card verdict job-verdict" aria-label="Verdict">
      <p className="verdict-words headline">{report.verdict}</p>
      <div className="job-figures">
        <Facts className="facts" facts={factsOf({ report, run, terms })} />
        {job?.total && <Terms job={job} />}
      </div>
      {job && job.withheld !== '' && <p className="muted">{job.withheld}</p>}
      {job?.total && job.method !== '' && (
        <details className="job-method">
          <summary>How this was estimated</summary>
          <p>{job.method}</p>
        </details>
      )}
    </section>
  );
}

function markdownOf(report: RunReport, merged: readonly MergedOutcome[]): string {
  const context = { run: report.name, perStep: true, link: window.location.href };
  const findings = merged.map(
    ({ outcome, where, when }) =>
      `${findingMarkdown(outcome, context)}\nApplies to: ${markdownText([where || 'the whole run', when].filter(Boolean).join(', '))}\n`,
  );
  return [`## ${markdownText(report.name)}\n\n${markdownText(report.verdict)}\n`, ...findings].join(
    '\n',
  );
}

/** The advice on a job: each finding once, with its ranks and steps. */
export function Job({ report, run, choice }: Props): ReactNode {
  const isPrinting = usePrinting();
  const terms = useTerms(report.job);
  const dismissed = useSyncExternalStore(dismissals.subscribe, dismissals.current);
  const all = useMemo(() => traceRefsOf(run), [run]);
  const reported = useMemo(() => ({ report: null, traceRefs: all }), [all]);
  const traceRefs = useMemo(
    () => new Map(all.map((traceRef) => [traceRef.trace, traceRef])),
    [all],
  );
  const isDismissed = ({ outcome }: MergedOutcome): boolean => dismissed.includes(keyOf(outcome));
  const shown = report.merged.filter((merged) => !isDismissed(merged));
  const dismissedFindings = report.merged.filter(isDismissed);
  const { rules: open, toggle } = useOpenFindings(shown.map(({ outcome }) => outcome.rule));
  const step = { count: report.workers[0]?.step.count ?? 1 };
  const finding = (merged: MergedOutcome): ReactNode => {
    const { rule, fingerprint, trace } = merged.outcome;
    return (
      <JobFinding
        key={`${rule} ${fingerprint} ${trace}`}
        merged={merged}
        traceRefs={traceRefs}
        run={report.name}
        step={step}
        terms={terms}
        isOpen={isPrinting || open.includes(rule)}
        isDismissed={isDismissed(merged)}
        onToggle={(isOpen) => toggle(rule, isOpen)}
      />
    );
  };
  return (
    <ReportProvider value={reported}>
      <ViewHeader
        title="Advice"
        note={`${plural(shown.length, 'finding')} in ${plural(readyOf(run), 'trace')}`}
      >
        {choice}
        <AdviceExport
          report={report}
          name={[report.name]}
          findings={{ merged: shown }}
          markdown={() => markdownOf(report, shown)}
        />
        <Button onClick={() => window.print()}>Print</Button>
      </ViewHeader>
      <div className="advice">
        <Verdict report={report} run={run} terms={terms} />
        <Incomplete
          run={run}
          missing={report.merged.find(({ outcome }) => outcome.reports_missing_data)?.outcome}
        />
        {shown.length > 0 ? (
          <section aria-labelledby="fix-first">
            <div className="section-head wrap">
              <h2 id="fix-first">What to fix first</h2>
              <p>
                Each finding once, with its ranks and steps. Ranks wait for each other, so their
                savings do not add up.
              </p>
            </div>
            <ol className="findings framed">{shown.map(finding)}</ol>
          </section>
        ) : (
          <Empty icon="passed" title="No problems found in any trace">
            <p>Select a rank above to see all checks on its trace.</p>
          </Empty>
        )}
        <JobOutlook
          job={report.job}
          dismissed={dismissedFindings.map(({ outcome }) => outcome.rule)}
        />
        <Fold
          title="Dismissed"
          note="dismissed in this browser; the job still has them"
          size={dismissedFindings.length}
        >
          {dismissedFindings.map(finding)}
        </Fold>
      </div>
    </ReportProvider>
  );
}
