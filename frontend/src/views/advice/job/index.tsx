import { type ReactNode, useMemo, useSyncExternalStore } from 'react';
import type { MergedOutcome, RunReport, RunState } from '../../../api/types.gen';
import { count, duration, plural, share } from '../../../core/format';
import { dailySaving, hoursWords, type JobTerms, moneyWords } from '../../../core/job_saving';
import { spansOf } from '../../../core/progress';
import { recordingsOf } from '../../../core/recordings';
import { useNavigation } from '../../../state/navigation';
import { Copy } from '../../../widgets/copy';
import { Empty } from '../../../widgets/empty';
import { Fold } from '../../../widgets/fold';
import { ViewHeader } from '../../../widgets/view_header';
import { dismissals, keyOf } from '../dismissed';
import { AdviceExport } from '../export';
import { findingMarkdown } from '../markdown';
import { ReportProvider } from '../place';
import { usePrinting } from '../printing';
import { JobFinding } from './finding';
import { Incomplete } from './incomplete';
import { Terms, useTerms } from './terms';
import './job.css';

interface Props {
  readonly report: RunReport;
  readonly run: RunState;
  /** What chooses between the job and one of its ranks. */
  readonly choice: ReactNode;
}

/** The rule whose finding is told at the top too. */
const MISSING_RANKS = 'missing-ranks';

interface VerdictProps extends Pick<Props, 'report' | 'run'> {
  readonly terms: JobTerms;
}

const readyOf = (run: RunState): number =>
  spansOf(run).filter(({ state }) => state === 'ready').length;

function Facts({ report, run, terms }: VerdictProps): ReactNode {
  const { job } = report;
  const daily = job?.total ? dailySaving(job.total, terms) : null;
  const money = daily ? moneyWords(daily) : '';
  const ready = readyOf(run);
  return (
    <dl className="facts">
      {job && job.step_ns > 0 && (
        <div title="The longest of its recordings’ mean steps">
          <dt>Step of the job</dt>
          <dd>{duration(job.step_ns)}</dd>
        </div>
      )}
      <div>
        <dt>Recordings</dt>
        <dd>
          {count(ready)}
          {ready < spansOf(run).length && <small> of {count(spansOf(run).length)}</small>}
        </dd>
      </div>
      {job?.total && (
        <div title={job.method}>
          <dt>All findings together</dt>
          <dd>up to {share(job.total.high_share)}</dd>
        </div>
      )}
      {daily && (
        <div title={job?.method}>
          <dt>Could be won back a day</dt>
          <dd>{hoursWords(daily)}</dd>
        </div>
      )}
      {money !== '' && (
        <div title={job?.method}>
          <dt>In money a day</dt>
          <dd>{money}</dd>
        </div>
      )}
    </dl>
  );
}

function Verdict({ report, run, terms }: VerdictProps): ReactNode {
  const { job } = report;
  return (
    <section className="card verdict job-verdict" aria-label="Verdict">
      <p className="verdict-words">{report.verdict}</p>
      <div className="job-figures">
        <Facts report={report} run={run} terms={terms} />
        {job?.total && <Terms job={job} />}
      </div>
      {job && job.withheld !== '' && <p className="muted">{job.withheld}</p>}
      {job?.total && job.method !== '' && (
        <details className="job-method">
          <summary>How this was reckoned</summary>
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
      `${findingMarkdown(outcome, context)}\nHolds for: ${[where || 'the run as a whole', when].filter(Boolean).join(', ')}\n`,
  );
  return [`## ${report.name}\n\n${report.verdict}\n`, ...findings].join('\n');
}

/** What holds for the whole job: each finding once, with the ranks and steps that it holds for. */
export function Job({ report, run, choice }: Props): ReactNode {
  const { location, go } = useNavigation();
  const isPrinting = usePrinting();
  const terms = useTerms(report.job);
  const dismissed = useSyncExternalStore(dismissals.subscribe, dismissals.current);
  const all = useMemo(() => recordingsOf(run), [run]);
  const reported = useMemo(() => ({ report: null, recordings: all }), [all]);
  const recordings = useMemo(() => new Map(all.map((each) => [each.trace, each])), [all]);
  const isAside = ({ outcome }: MergedOutcome): boolean => dismissed.includes(keyOf(outcome));
  const shown = report.merged.filter((each) => !isAside(each));
  const aside = report.merged.filter(isAside);
  const open = location.open ?? shown[0]?.outcome.rule ?? null;
  const step = { count: report.workers[0]?.step.count ?? 1 };
  const finding = (merged: MergedOutcome): ReactNode => {
    const { rule, fingerprint, trace } = merged.outcome;
    return (
      <JobFinding
        key={`${rule} ${fingerprint} ${trace}`}
        merged={merged}
        recordings={recordings}
        run={report.name}
        step={step}
        terms={terms}
        isOpen={isPrinting || rule === open}
        isDismissed={isAside(merged)}
        onToggle={(isOpen) => go({ open: isOpen ? rule : 'none' }, 'replace')}
      />
    );
  };
  return (
    <ReportProvider value={reported}>
      <ViewHeader
        title="Advice"
        note={`${plural(shown.length, 'finding')} in ${plural(readyOf(run), 'recording')}`}
      >
        {choice}
        {shown.length > 0 && (
          <Copy text={() => markdownOf(report, shown)} label="Copy all as Markdown" />
        )}
        <AdviceExport report={report} name={[report.name]} findings={{ merged: shown }} />
        <button type="button" className="button" onClick={() => window.print()}>
          Print
        </button>
      </ViewHeader>
      <div className="advice">
        <Verdict report={report} run={run} terms={terms} />
        <Incomplete
          run={run}
          missing={report.merged.find(({ outcome }) => outcome.rule === MISSING_RANKS)?.outcome}
        />
        {shown.length > 0 ? (
          <section aria-labelledby="fix-first">
            <div className="section-head">
              <h2 id="fix-first">What to fix first</h2>
              <p>
                Each finding once, with the ranks and steps that it holds for. Ranks wait for each
                other: savings of ranks do not add up.
              </p>
            </div>
            <ol className="findings job-findings">{shown.map(finding)}</ol>
          </section>
        ) : (
          <Empty icon="passed" title="Nothing to fix was found in any of its recordings">
            <p>What each check says of one recording is there when you choose a rank above.</p>
          </Empty>
        )}
        <Fold
          title="Dismissed"
          note="put aside by you in this browser; still true of the job"
          size={aside.length}
        >
          {aside.map(finding)}
        </Fold>
      </div>
    </ReportProvider>
  );
}
