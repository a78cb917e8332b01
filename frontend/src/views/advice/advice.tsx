import { type ReactNode, useEffect, useRef, useSyncExternalStore } from 'react';
import type { Outcome, RunReport, WorkerReport } from '../../api/types.gen';
import { markdownText } from '../../core/export';
import { plural } from '../../core/format';
import { reportOf } from '../../core/health';
import type { TraceRef } from '../../core/traces';
import { useNavigation } from '../../state/navigation';
import { useChangeOptions } from '../../state/option';
import { Button } from '../../widgets/button';
import { Empty } from '../../widgets/empty';
import { Fold } from '../../widgets/fold';
import { HealthSummary } from '../../widgets/health';
import { ViewHeader } from '../../widgets/view_header';
import { dismissals } from './dismissed';
import { AdviceExport } from './export';
import { Finding } from './finding';
import { ReportProvider } from './links';
import { findingMarkdown } from './markdown';
import { NoFindings } from './no_findings';
import { openRules, useOpenFindings } from './opened';
import {
  Elsewhere,
  Failed,
  Inconclusive,
  NotApplicable,
  Passed,
  RuledOut,
  Suppressed,
} from './others';
import {
  countedUnder,
  emptyReason,
  type Filters,
  type GroupedOutcomes,
  groupedOutcomes,
  isShown,
  onlyElsewhere,
  otherTracesWith,
  runFindings,
  splitDismissed,
  topicsOf,
} from './outcomes';
import { TraceOutlook } from './outlook';
import { usePrinting } from './printing';
import { Verdict } from './verdict';
import './advice.css';

interface Props {
  readonly report: RunReport;
  /** Id of the trace that the page shows. */
  readonly trace: string;
  readonly name: string;
  /** All traces of the run. */
  readonly traceRefs: readonly TraceRef[];
  /** Switches between the run and one of its traces; null for a single trace. */
  readonly choice: ReactNode;
}

interface LeftOutProps {
  readonly hiddenCount: number;
  readonly dismissedCount: number;
  readonly clear: () => void;
}

/** Counts filtered and dismissed findings. */
function LeftOut({ hiddenCount, dismissedCount, clear }: LeftOutProps): ReactNode {
  if (hiddenCount + dismissedCount === 0) return null;
  return (
    <p className="left-out wrap" role="status">
      {hiddenCount > 0 && (
        <>
          {plural(hiddenCount, 'finding')} filtered out{' '}
          <Button quiet onClick={clear}>
            Show all
          </Button>
        </>
      )}
      {dismissedCount > 0 && <span>{plural(dismissedCount, 'dismissed finding')} below</span>}
    </p>
  );
}

interface TopicsProps {
  readonly outcomes: readonly Outcome[];
  readonly selected: string | null;
  readonly onChoose: (topic: string | null) => void;
}

/** Filters the findings by topic. */
function Topics({ outcomes, selected, onChoose }: TopicsProps): ReactNode {
  const topics = topicsOf(outcomes);
  if (topics.length < 2) return null;
  return (
    <select
      aria-label="Topic"
      value={selected ?? ''}
      onChange={(event) => onChoose(event.target.value || null)}
    >
      <option value="">All topics</option>
      {topics.map(({ name, count }) => (
        <option key={name} value={name}>
          {name} ({count})
        </option>
      ))}
    </select>
  );
}

function allMarkdown(report: RunReport, worker: WorkerReport, all: readonly Outcome[]): string {
  const context = { run: report.name, perStep: worker.step.count > 0, link: window.location.href };
  const title = markdownText(`${report.name}: ${worker.name}, span ${worker.span}`);
  const head = `## ${title}\n\n${markdownText(worker.verdict)}\n`;
  return [head, ...all.map((outcome) => findingMarkdown(outcome, context))].join('\n');
}

/** A row that begins lower on the screen hides what it opens. */
const LOWEST_PART = 0.8;

/** Scrolls to a finding or check that a link opens, if it is not on the screen. */
function useScrollToLinked(): void {
  const { open } = useNavigation().location;
  const previous = useRef<readonly string[]>([]);
  useEffect(() => {
    const rules = openRules(open);
    const added = rules.find((rule) => !previous.current.includes(rule));
    previous.current = rules;
    const element = added && document.querySelector(`[data-rule="${CSS.escape(added)}"]`);
    if (!element) return;
    const { top } = element.getBoundingClientRect();
    if (top < 0 || top > LOWEST_PART * window.innerHeight) {
      element.scrollIntoView({ block: 'start' });
    }
  }, [open]);
}

/** The advice on one trace of a run. */
export function Advice({ report, trace, name, traceRefs, choice }: Props): ReactNode {
  useScrollToLinked();
  const worker = reportOf(report, trace);
  if (!worker) {
    return (
      <Empty icon="info" title={`No advice on ${name}`}>
        <p>
          This trace could not be read, or is still being read. The run has{' '}
          {plural(traceRefs.length - 1, 'other trace')}: select one above.
        </p>
      </Empty>
    );
  }
  return (
    <ReportProvider value={{ report, traceRefs }}>
      <TraceAdvice report={report} worker={worker} traceRefs={traceRefs} choice={choice} />
    </ReportProvider>
  );
}

function noteOf(
  all: readonly Outcome[],
  { passed, ruledOut, inconclusive }: GroupedOutcomes,
): string {
  const parts = [
    plural(all.length, 'finding'),
    `${plural(passed.length, 'check')} passed`,
    ...(ruledOut.length > 0 ? [`${ruledOut.length} ruled out`] : []),
    ...(inconclusive.length > 0 ? [`${inconclusive.length} inconclusive`] : []),
  ];
  return parts.join(', ');
}

function useFilters(): readonly [Filters, (next: Partial<Filters>) => void] {
  const { location } = useNavigation();
  const change = useChangeOptions();
  const { part = null, topic = null } = location.options;
  return [{ part, topic }, (next) => change({ part, topic, ...next })];
}

interface SectionProps {
  readonly id: string;
  readonly title: string;
  readonly note: string;
  readonly children: readonly ReactNode[];
}

function Section({ id, title, note, children }: SectionProps): ReactNode {
  if (children.length === 0) return null;
  return (
    <section aria-labelledby={id}>
      <div className="section-head wrap">
        <h2 id={id}>{title}</h2>
        <p>{note}</p>
      </div>
      <ol className="findings framed">{children}</ol>
    </section>
  );
}

interface TraceAdviceProps extends Pick<Props, 'report' | 'traceRefs' | 'choice'> {
  readonly worker: WorkerReport;
}

function TraceAdvice({ report, worker, traceRefs, choice }: TraceAdviceProps): ReactNode {
  const isPrinting = usePrinting();
  const [filters, choose] = useFilters();
  const dismissedKeys = useSyncExternalStore(dismissals.subscribe, dismissals.current);
  const outcomes = groupedOutcomes(report.outcomes, worker.trace);
  const [ofRun, dismissedOfRun] = splitDismissed(runFindings(report.outcomes), dismissedKeys);
  const [findings, dismissedFindings] = splitDismissed(outcomes.findings, dismissedKeys);
  const [related, dismissedRelated] = splitDismissed(outcomes.related, dismissedKeys);
  const dismissed = [...dismissedOfRun, ...dismissedFindings, ...dismissedRelated];
  const all = [...ofRun, ...findings, ...related];
  const show = (list: readonly Outcome[]): Outcome[] =>
    list.filter((outcome) => isShown(outcome, filters, worker));
  const [shownOfRun, shownFindings, shownRelated] = [show(ofRun), show(findings), show(related)];
  const shownCount = shownOfRun.length + shownFindings.length + shownRelated.length;
  const hasFindings = all.length + dismissed.length > 0;
  const isUnsure =
    !hasFindings && ['inconclusive', 'nothing-applicable'].includes(emptyReason(worker));
  const { rules: open, toggle } = useOpenFindings([...ofRun, ...findings].map(({ rule }) => rule));
  const hasOpen = (list: readonly Outcome[]): boolean =>
    list.some(({ rule }) => open.includes(rule));
  const item = (outcome: Outcome, isDismissed = false): ReactNode => {
    const same = otherTracesWith(report.merged, outcome.rule, worker.trace);
    return (
      <Finding
        key={outcome.rule + outcome.fingerprint}
        outcome={outcome}
        run={report.name}
        step={worker.step}
        also={outcome.trace === '' ? [] : traceRefs.filter(({ trace }) => same.includes(trace))}
        isRelated={outcomes.related.includes(outcome)}
        countedBy={countedUnder(outcome, shownFindings)}
        isOpen={isPrinting || open.includes(outcome.rule)}
        isDismissed={isDismissed}
        onToggle={(isOpen) => toggle(outcome.rule, isOpen)}
      />
    );
  };
  return (
    <>
      <ViewHeader title="Advice" note={noteOf(all, outcomes)}>
        {choice}
        <Topics outcomes={all} selected={filters.topic} onChoose={(topic) => choose({ topic })} />
        <AdviceExport
          report={report}
          name={[report.name, worker.name, worker.span]}
          findings={{ outcomes: all }}
          markdown={() => allMarkdown(report, worker, all)}
        />
        <Button onClick={() => window.print()}>Print</Button>
      </ViewHeader>
      <div className="advice">
        <Verdict
          worker={worker}
          run={report}
          part={filters.part}
          onPart={(part) => choose({ part })}
        />
        {hasFindings ? (
          <>
            <LeftOut
              hiddenCount={all.length - shownCount}
              dismissedCount={dismissed.length}
              clear={() => choose({ part: null, topic: null })}
            />
            <Section
              id="of-the-run"
              title="Whole run"
              note="Time that ranks cost each other; findings of single ranks do not count it again."
            >
              {shownOfRun.map((outcome) => item(outcome))}
            </Section>
            <Section
              id="fix-first"
              title="What to fix first"
              note="Each saving is of its fix alone: where findings share time, they do not add up."
            >
              {shownFindings.map((outcome) => item(outcome))}
            </Section>
            <Fold
              title="Related symptoms"
              note="other signs of the same lost time: no further saving"
              size={shownRelated.length}
              isOpen={isPrinting || hasOpen(shownRelated)}
            >
              {shownRelated.map((outcome) => item(outcome))}
            </Fold>
            <TraceOutlook worker={worker} dismissed={dismissed.map(({ rule }) => rule)} />
          </>
        ) : (
          <NoFindings outcomes={outcomes} worker={worker} />
        )}
        <Elsewhere outcomes={onlyElsewhere(report.merged, worker.trace)} />
        <Failed outcomes={outcomes.failed} />
        <div className="others">
          <RuledOut outcomes={outcomes.ruledOut} />
          <Passed outcomes={outcomes.passed} />
          <Inconclusive outcomes={outcomes.inconclusive} isOpen={isUnsure} />
          <NotApplicable outcomes={outcomes.notApplicable} />
          <Suppressed outcomes={outcomes.suppressed} />
          <Fold
            title="Dismissed"
            note="dismissed in this browser; the trace still has them"
            size={dismissed.length}
            isOpen={hasOpen(dismissed)}
          >
            {dismissed.map((outcome) => item(outcome, true))}
          </Fold>
        </div>
        <HealthSummary items={worker.health} />
      </div>
    </>
  );
}
