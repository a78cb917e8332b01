import { type ReactNode, useEffect, useRef, useSyncExternalStore } from 'react';
import type { Outcome, RunReport, WorkerReport } from '../../api/types.gen';
import { plural } from '../../core/format';
import { reportOf } from '../../core/health';
import type { Recording } from '../../core/recordings';
import { useNavigation } from '../../state/navigation';
import { withOption } from '../../state/option';
import { Copy } from '../../widgets/copy';
import { Empty } from '../../widgets/empty';
import { Fold } from '../../widgets/fold';
import { HealthSummary } from '../../widgets/health';
import { ViewHeader } from '../../widgets/view_header';
import { dismissals } from './dismissed';
import { Elsewhere } from './elsewhere';
import { AdviceExport } from './export';
import { apart, type Filters, isShown, topicsOf } from './filters';
import { Finding } from './finding';
import { findingMarkdown } from './markdown';
import { NothingFound } from './nothing_found';
import { CannotTell, Failed, NotApplicable, Passed, Rejected, Suppressed } from './others';
import {
  alsoFound,
  emptiness,
  foundElsewhere,
  ofTheRun,
  type Sorted,
  sorted,
  takersOf,
} from './outcomes';
import { ReportProvider, useRecordings } from './place';
import { usePrinting } from './printing';
import { Verdict } from './verdict';
import './advice.css';

interface Props {
  readonly report: RunReport;
  /** Which of the run's recordings the page shows. */
  readonly trace: string;
  /** What the page calls it. */
  readonly name: string;
  /** All of the run's recordings. */
  readonly recordings: readonly Recording[];
  /** What chooses between the run and one of its recordings; null where it has only one. */
  readonly choice: ReactNode;
}

interface FindingsProps {
  readonly report: RunReport;
  readonly found: readonly Outcome[];
  readonly covered: readonly Outcome[];
  readonly ofRun: readonly Outcome[];
  readonly worker: WorkerReport;
  /** How many findings filters leave out, and how many were put aside. */
  readonly hidden: ReactNode;
}

type ItemProps = Pick<FindingsProps, 'report' | 'worker'> & {
  readonly outcome: Outcome;
  readonly open: string | null;
  readonly found?: readonly Outcome[];
  readonly isDismissed?: boolean;
};

function Item({
  report,
  worker,
  outcome,
  open,
  found = [],
  isDismissed = false,
}: ItemProps): ReactNode {
  const { go } = useNavigation();
  const isPrinting = usePrinting();
  const recordings = useRecordings();
  const also = alsoFound(report.merged, outcome.rule, worker.trace);
  return (
    <Finding
      outcome={outcome}
      run={report.name}
      step={worker.step}
      also={outcome.trace === '' ? [] : recordings.filter(({ trace }) => also.includes(trace))}
      takers={takersOf(outcome, found)}
      isOpen={isPrinting || outcome.rule === open}
      isDismissed={isDismissed}
      onToggle={(isOpen) => go({ open: isOpen ? outcome.rule : 'none' }, 'replace')}
    />
  );
}

function Findings({ report, found, covered, ofRun, worker, hidden }: FindingsProps): ReactNode {
  const { location } = useNavigation();
  const open = location.open ?? (ofRun[0] ?? found[0])?.rule ?? null;
  const finding = (outcome: Outcome): ReactNode => (
    <Item
      key={outcome.rule + outcome.fingerprint}
      report={report}
      worker={worker}
      outcome={outcome}
      open={open}
      found={found}
    />
  );
  return (
    <>
      {ofRun.length > 0 && (
        <section aria-labelledby="of-the-run">
          <div className="section-head">
            <h2 id="of-the-run">In the run as a whole</h2>
            <p>What its ranks cost each other; their own findings do not count that time again.</p>
          </div>
          <ol className="findings">{ofRun.map(finding)}</ol>
        </section>
      )}
      <section aria-labelledby="fix-first">
        <div className="section-head">
          <h2 id="fix-first" hidden={found.length === 0}>
            What to fix first
          </h2>
          {hidden}
          <p hidden={found.length === 0}>
            Savings are upper bounds. Time that several findings could save is counted in one of
            them.
          </p>
        </div>
        <ol className="findings">{found.map(finding)}</ol>
      </section>
      {covered.length > 0 && (
        <section aria-labelledby="seen-too">
          <div className="section-head minor">
            <h2 id="seen-too">Seen too, counted above</h2>
            <p>The same time, seen from another side: not a further saving.</p>
          </div>
          <ul className="findings">{covered.map(finding)}</ul>
        </section>
      )}
    </>
  );
}

interface DismissedProps {
  readonly report: RunReport;
  readonly worker: WorkerReport;
  readonly outcomes: readonly Outcome[];
}

/** What the user put aside, with a way back for each. */
function Dismissed({ report, worker, outcomes }: DismissedProps): ReactNode {
  const { location } = useNavigation();
  const isNamed = outcomes.some((outcome) => outcome.rule === location.open);
  return (
    <Fold
      title="Dismissed"
      note="put aside by you in this browser; still true of the recording"
      size={outcomes.length}
      isOpen={isNamed}
    >
      {outcomes.map((outcome) => (
        <Item
          key={outcome.rule + outcome.fingerprint}
          report={report}
          worker={worker}
          outcome={outcome}
          open={location.open}
          isDismissed
        />
      ))}
    </Fold>
  );
}

interface LeftOutProps {
  readonly hiddenCount: number;
  readonly dismissedCount: number;
  readonly clear: () => void;
}

/** What is not shown, and how to see it: nothing is hidden without a word. */
function LeftOut({ hiddenCount, dismissedCount, clear }: LeftOutProps): ReactNode {
  if (hiddenCount + dismissedCount === 0) return null;
  return (
    <p className="left-out" role="status">
      {hiddenCount > 0 && (
        <>
          {plural(hiddenCount, 'finding')} of other parts {hiddenCount === 1 ? 'is' : 'are'} not
          shown{' '}
          <button type="button" className="button quiet" onClick={clear}>
            Show all
          </button>
        </>
      )}
      {dismissedCount > 0 && <span>{plural(dismissedCount, 'dismissed finding')} below</span>}
    </p>
  );
}

interface TopicsProps {
  readonly outcomes: readonly Outcome[];
  readonly chosen: string | null;
  readonly onChoose: (topic: string | null) => void;
}

/** What the findings are about; one of them at a time. */
function Topics({ outcomes, chosen, onChoose }: TopicsProps): ReactNode {
  const topics = topicsOf(outcomes);
  if (topics.length < 2) return null;
  return (
    <fieldset className="topics">
      <legend className="visually-hidden">Only findings about</legend>
      {topics.map(({ name, count }) => (
        <button
          key={name}
          type="button"
          className="topic"
          aria-pressed={name === chosen}
          onClick={() => onChoose(name === chosen ? null : name)}
        >
          {name} <span>{count}</span>
        </button>
      ))}
    </fieldset>
  );
}

/** All findings as one Markdown text. */
function allMarkdown(report: RunReport, worker: WorkerReport, found: readonly Outcome[]): string {
  const context = { run: report.name, perStep: worker.step.count > 0, link: window.location.href };
  const head = `## ${report.name}: ${worker.name}, span ${worker.span}\n\n${worker.verdict}\n`;
  return [head, ...found.map((outcome) => findingMarkdown(outcome, context))].join('\n');
}

/** Where a link names a finding or a check, it is what should be seen first. */
function useNamedInView(): void {
  const named = useRef(useNavigation().location.open);
  useEffect(() => {
    if (named.current === null) return;
    const found = document.querySelector(`[data-rule="${CSS.escape(named.current)}"]`);
    found?.scrollIntoView({ block: 'nearest' });
  }, []);
}

/** The advice on one recording of a run. */
export function Advice({ report, trace, name, recordings, choice }: Props): ReactNode {
  useNamedInView();
  const worker = reportOf(report, trace);
  const outcomes = sorted(report.outcomes, trace);
  if (!worker) {
    return (
      <Empty icon="info" title={`No advice on ${name}`}>
        <p>
          This recording could not be read, or is still being read. The run has{' '}
          {plural(recordings.length - 1, 'other recording')}: choose one above.
        </p>
      </Empty>
    );
  }
  return (
    <ReportProvider value={{ report, recordings }}>
      <OfRecording report={report} worker={worker} outcomes={outcomes} choice={choice} />
    </ReportProvider>
  );
}

/** How much was found, and looked at. */
function noteOf(found: readonly Outcome[], { passed, cannotTell }: Sorted): string {
  const parts = [
    plural(found.length, 'finding'),
    `${plural(passed.length, 'check')} passed`,
    ...(cannotTell.length > 0 ? [`${cannotTell.length} cannot tell`] : []),
  ];
  return parts.join(', ');
}

interface RecordingProps extends Pick<Props, 'choice'> {
  readonly report: RunReport;
  readonly worker: WorkerReport;
  readonly outcomes: Sorted;
}

function useFilters(): readonly [Filters, (next: Partial<Filters>) => void] {
  const { location, go } = useNavigation();
  const { part = null, topic = null } = location.options;
  const choose = (next: Partial<Filters>): void => {
    const chosen = { part, topic, ...next };
    const options = withOption(location.options, 'part', chosen.part);
    go({ options: withOption(options, 'topic', chosen.topic) }, 'replace');
  };
  return [{ part, topic }, choose];
}

/** The advice on one recording that was read. */
function OfRecording({ report, worker, outcomes, choice }: RecordingProps): ReactNode {
  const [filters, choose] = useFilters();
  const dismissed = useSyncExternalStore(dismissals.subscribe, dismissals.current);
  const [ofRun, runAside] = apart(ofTheRun(report.outcomes), dismissed);
  const [found, foundAside] = apart(outcomes.found, dismissed);
  const [covered, coveredAside] = apart(outcomes.covered, dismissed);
  const aside = [...runAside, ...foundAside, ...coveredAside];
  const all = [...ofRun, ...found, ...covered];
  const show = (own: readonly Outcome[]): Outcome[] =>
    own.filter((outcome) => isShown(outcome, filters, worker));
  const shown = { ofRun: show(ofRun), found: show(found), covered: show(covered) };
  const shownCount = shown.ofRun.length + shown.found.length + shown.covered.length;
  const hasFound = all.length + aside.length > 0;
  const isUnsure =
    !hasFound && ['cannot-tell', 'nothing-applicable'].includes(emptiness(outcomes, worker));
  return (
    <>
      <ViewHeader title="Advice" note={noteOf(all, outcomes)}>
        {choice}
        <Topics outcomes={all} chosen={filters.topic} onChoose={(topic) => choose({ topic })} />
        {all.length > 0 && (
          <Copy text={() => allMarkdown(report, worker, all)} label="Copy all as Markdown" />
        )}
        <AdviceExport
          report={report}
          name={[report.name, worker.name, worker.span]}
          findings={{ outcomes: all }}
        />
        <button type="button" className="button" onClick={() => window.print()}>
          Print
        </button>
      </ViewHeader>
      <div className="advice">
        <Verdict
          worker={worker}
          run={report}
          part={filters.part}
          onPart={(part) => choose({ part })}
        />
        {hasFound ? (
          <Findings
            report={report}
            {...shown}
            worker={worker}
            hidden={
              <LeftOut
                hiddenCount={all.length - shownCount}
                dismissedCount={aside.length}
                clear={() => choose({ part: null, topic: null })}
              />
            }
          />
        ) : (
          <NothingFound outcomes={outcomes} worker={worker} />
        )}
        <Elsewhere outcomes={foundElsewhere(report.merged, worker.trace)} />
        <Failed outcomes={outcomes.failed} />
        <div className="others">
          <Rejected outcomes={outcomes.rejected} />
          <Passed outcomes={outcomes.passed} />
          <CannotTell outcomes={outcomes.cannotTell} isOpen={isUnsure} />
          <NotApplicable outcomes={outcomes.notApplicable} />
          <Suppressed outcomes={outcomes.suppressed} />
          <Dismissed report={report} worker={worker} outcomes={aside} />
        </div>
        <HealthSummary items={worker.health} />
      </div>
    </>
  );
}
