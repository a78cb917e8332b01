import type { ReactNode } from 'react';
import type { Outcome, RunReport, WorkerReport } from '../../api/types.gen';
import { plural } from '../../core/format';
import { useNavigation } from '../../state/navigation';
import { Empty } from '../../widgets/empty';
import { Health } from '../../widgets/health';
import { Elsewhere } from './elsewhere';
import { Finding } from './finding';
import { NothingFound } from './nothing_found';
import { Failed, NotApplicable, Passed, Suppressed } from './others';
import { alsoFound, emptiness, foundElsewhere, type Recording, reportOf, sorted } from './outcomes';
import { Verdict } from './verdict';
import './advice.css';

interface Props {
  readonly report: RunReport;
  readonly recording: Recording;
}

interface FindingsProps extends Props {
  readonly found: readonly Outcome[];
  readonly worker: WorkerReport;
}

function Findings({ report, recording, found, worker }: FindingsProps): ReactNode {
  const { location, go } = useNavigation();
  const open = location.open ?? found[0]?.rule ?? null;
  return (
    <section aria-labelledby="fix-first">
      <div className="section-head">
        <h2 id="fix-first">What to fix first</h2>
        <p>
          Savings are upper bounds. Time that several findings could save is counted in one of them.
        </p>
      </div>
      <ol className="findings">
        {found.map((outcome) => (
          <Finding
            key={outcome.rule}
            outcome={outcome}
            run={report.name}
            step={worker.step}
            also={alsoFound(report.outcomes, outcome.rule, recording)}
            isOpen={outcome.rule === open}
            onToggle={(isOpen) => go({ open: isOpen ? outcome.rule : 'none' }, 'replace')}
          />
        ))}
      </ol>
    </section>
  );
}

/** The advice on one recording of a run. */
export function Advice({ report, recording }: Props): ReactNode {
  const worker = reportOf(report, recording);
  const outcomes = sorted(report.outcomes, recording);
  if (!worker) {
    return (
      <Empty icon="info" title={`No advice on ${recording.worker}, span ${recording.span}`}>
        <p>
          This recording could not be read, or is still being read. The run has{' '}
          {plural(report.workers.length, 'other recording')}: choose one above.
        </p>
      </Empty>
    );
  }
  const isUnsure = outcomes.found.length === 0 && emptiness(outcomes, worker.health) !== 'healthy';
  return (
    <div className="advice">
      <Verdict worker={worker} />
      {outcomes.found.length > 0 ? (
        <Findings report={report} recording={recording} found={outcomes.found} worker={worker} />
      ) : (
        <NothingFound outcomes={outcomes} worker={worker} />
      )}
      <Elsewhere outcomes={foundElsewhere(report.outcomes, recording)} />
      <Failed outcomes={outcomes.failed} />
      <div className="others">
        <Passed outcomes={outcomes.passed} />
        <NotApplicable outcomes={outcomes.notApplicable} isOpen={isUnsure} />
        <Suppressed outcomes={outcomes.suppressed} />
      </div>
      <Health items={worker.health} />
    </div>
  );
}
