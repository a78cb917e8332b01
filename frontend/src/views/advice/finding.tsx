import type { ReactNode } from 'react';
import type { Outcome, StepReport } from '../../api/types.gen';

import { duration, durationRange, plural, share } from '../../core/format';
import type { Recording } from '../../core/recordings';
import { SeverityBadge } from '../../widgets/badge';
import { FindingBody } from './finding_body';
import { FindingFrame } from './finding_frame';
import { isCovered } from './outcomes';

interface Props {
  readonly outcome: Outcome;
  readonly run: string;
  readonly step: StepReport;
  /** Other recordings with the same finding. */
  readonly also: readonly Recording[];
  /** The findings that count this one's time already. */
  readonly takers?: readonly Outcome[];
  readonly isOpen: boolean;
  readonly onToggle: (isOpen: boolean) => void;
  readonly isDismissed?: boolean;
}

function Covered({ grossNs, takers }: { grossNs: number; takers: readonly Outcome[] }): ReactNode {
  const where = takers.map((taker) => `“${taker.title}”`).join(' and ') || 'the findings above';
  return (
    <span className="saving saving-none">
      its {duration(grossNs)} are counted under {where}
    </span>
  );
}

function Saving({
  outcome,
  step,
  takers = [],
}: Pick<Props, 'outcome' | 'step' | 'takers'>): ReactNode {
  const { claim } = outcome;
  if (isCovered(outcome)) return <Covered grossNs={claim?.gross_ns ?? 0} takers={takers} />;
  if (!claim || claim.net_high_ns === 0) {
    return <span className="saving saving-none">no saving of its own</span>;
  }
  const wide = Math.min(1, claim.net_share) * 100;
  const low = (claim.net_low_ns / claim.net_high_ns) * wide;
  return (
    <span className="saving">
      <span className="saving-words">
        <strong>up to {duration(claim.net_high_ns)}</strong>
        {step.count > 0 ? '/step' : ''}, {share(claim.net_share)}
      </span>
      <span className="saving-track" aria-hidden="true">
        <span className="saving-high" style={{ width: `${wide}%` }} />
        <span className="saving-low" style={{ width: `${low}%` }} />
      </span>
      <span className="saving-range">
        {durationRange(claim.net_low_ns, claim.net_high_ns)} likely
      </span>
    </span>
  );
}

/** One finding: closed, what and how much; open, why, proof and fix. */
export function Finding(props: Props): ReactNode {
  const { outcome, step, also, takers, isOpen, onToggle } = props;
  const facts = outcome.evidence.length + outcome.tables.length + outcome.events.length;
  const severity = outcome.severity ?? 'info';
  return (
    <FindingFrame
      outcome={outcome}
      look={isCovered(outcome) ? 'covered' : severity}
      badge={
        isCovered(outcome) ? (
          <span className="muted">Seen too</span>
        ) : (
          <SeverityBadge severity={severity} />
        )
      }
      meta={
        <>
          {outcome.doubts.length > 0 && <span className="doubtful">doubtful</span>}
          {outcome.confidence && <span>{outcome.confidence} confidence</span>}
          {outcome.life_cycle !== 'stable' && <span>{outcome.life_cycle} rule</span>}
          {outcome.package !== '' && <span>from {outcome.package}</span>}
          <span>{plural(facts, 'piece of evidence', 'pieces of evidence')}</span>
          {also.length > 0 && <span>also in {plural(also.length, 'other recording')}</span>}
        </>
      }
      saving={<Saving outcome={outcome} step={step} takers={takers} />}
      isOpen={isOpen}
      onToggle={onToggle}
    >
      <FindingBody {...props} />
    </FindingFrame>
  );
}
