import { type ReactNode, useEffect, useRef } from 'react';
import type { Outcome, RunReport, WorkerReport } from '../../api/types.gen';
import { plural } from '../../core/format';
import { reportOf } from '../../core/health';
import { useNavigation } from '../../state/navigation';
import { Empty } from '../../widgets/empty';
import { HealthSummary } from '../../widgets/health';
import { Elsewhere } from './elsewhere';
import { Finding } from './finding';
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
import { Verdict } from './verdict';
import './advice.css';

interface Props {
  readonly report: RunReport;
  /** Which of the run's recordings the page shows. */
  readonly trace: string;
  /** What the page calls it. */
  readonly name: string;
}

interface FindingsProps {
  readonly report: RunReport;
  readonly outcomes: Sorted;
  readonly worker: WorkerReport;
}

function Findings({ report, outcomes, worker }: FindingsProps): ReactNode {
  const { location, go } = useNavigation();
  const { found, covered } = outcomes;
  const ofRun = ofTheRun(report.outcomes);
  const open = location.open ?? (ofRun[0] ?? found[0])?.rule ?? null;
  const finding = (outcome: Outcome): ReactNode => (
    <Finding
      key={outcome.rule + outcome.fingerprint}
      outcome={outcome}
      run={report.name}
      step={worker.step}
      also={alsoFound(report.outcomes, outcome.rule, worker.trace)}
      takers={takersOf(outcome, found)}
      isOpen={outcome.rule === open}
      onToggle={(isOpen) => go({ open: isOpen ? outcome.rule : 'none' }, 'replace')}
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
      <section aria-labelledby="fix-first" hidden={found.length === 0}>
        <div className="section-head">
          <h2 id="fix-first">What to fix first</h2>
          <p>
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
export function Advice({ report, trace, name }: Props): ReactNode {
  useNamedInView();
  const worker = reportOf(report, trace);
  const outcomes = sorted(report.outcomes, trace);
  if (!worker) {
    return (
      <Empty icon="info" title={`No advice on ${name}`}>
        <p>
          This recording could not be read, or is still being read. The run has{' '}
          {plural(report.workers.length, 'other recording')}: choose one above.
        </p>
      </Empty>
    );
  }
  const hasFound =
    outcomes.found.length + outcomes.covered.length + ofTheRun(report.outcomes).length > 0;
  const isUnsure =
    !hasFound && ['cannot-tell', 'nothing-applicable'].includes(emptiness(outcomes, worker));
  return (
    <div className="advice">
      <Verdict worker={worker} run={report} />
      {hasFound ? (
        <Findings report={report} outcomes={outcomes} worker={worker} />
      ) : (
        <NothingFound outcomes={outcomes} worker={worker} />
      )}
      <Elsewhere outcomes={foundElsewhere(report.outcomes, trace)} />
      <Failed outcomes={outcomes.failed} />
      <div className="others">
        <Rejected outcomes={outcomes.rejected} />
        <Passed outcomes={outcomes.passed} />
        <CannotTell outcomes={outcomes.cannotTell} isOpen={isUnsure} />
        <NotApplicable outcomes={outcomes.notApplicable} />
        <Suppressed outcomes={outcomes.suppressed} />
      </div>
      <HealthSummary items={worker.health} />
    </div>
  );
}
