import { type ReactNode, useId } from 'react';
import type { Outcome, StepReport } from '../../api/types.gen';
import { decisiveSaving, otherSaving } from '../../core/claims';
import { duration, durationRange, plural, share, unbroken } from '../../core/format';
import type { TraceRef } from '../../core/traces';
import { SeverityBadge } from '../../widgets/badge';
import { Icon } from '../../widgets/icon';
import { FindingBody } from './finding_body';
import { isRelated } from './outcomes';

interface FrameProps {
  readonly outcome: Outcome;
  /** The colour of its edge: a severity, or `covered` for related symptoms. */
  readonly look: string;
  readonly badge: ReactNode;
  readonly meta: ReactNode;
  readonly saving: ReactNode;
  readonly isOpen: boolean;
  readonly onToggle: (isOpen: boolean) => void;
  /** Rendered only while it is open. */
  readonly children: ReactNode;
}

/** A finding of a trace or of a job: a head with title and saving, which opens the details. */
export function FindingFrame(props: FrameProps): ReactNode {
  const { outcome, look, badge, meta, saving, isOpen, onToggle, children } = props;
  const id = useId();
  return (
    <li data-rule={outcome.rule} className={`finding framed finding-${look}`}>
      <h3>
        <button
          type="button"
          className="finding-head option-row"
          aria-expanded={isOpen}
          aria-controls={id}
          onClick={() => onToggle(!isOpen)}
        >
          {badge}
          <span className="finding-title">
            {outcome.title}
            {!isOpen && <span className="finding-glimpse ellipsis muted">{outcome.message}</span>}
          </span>
          <span className="finding-meta note">{meta}</span>
          {saving}
          <span className="finding-chevron">
            <Icon name="chevron" size={18} />
          </span>
        </button>
      </h3>
      <div id={id} hidden={!isOpen}>
        {isOpen && children}
      </div>
    </li>
  );
}

/** The potential saving as a bar: low and high fraction, 0 to 1. */
export function SavingBar({
  low,
  high,
}: {
  readonly low: number;
  readonly high: number;
}): ReactNode {
  const width = (part: number): string => `${Math.min(1, part) * 100}%`;
  return (
    <span className="saving-track track" aria-hidden="true">
      <span className="saving-high" style={{ width: width(high) }} />
      <span className="saving-low" style={{ width: width(low) }} />
    </span>
  );
}

interface Props {
  readonly outcome: Outcome;
  readonly run: string;
  readonly step: StepReport;
  /** Other traces with the same finding. */
  readonly also: readonly TraceRef[];
  /** The findings that already count its time. */
  readonly countedBy: readonly Outcome[];
  readonly isOpen: boolean;
  readonly onToggle: (isOpen: boolean) => void;
  readonly isDismissed: boolean;
}

function Saving({ outcome, step, countedBy }: Props): ReactNode {
  const { claim } = outcome;
  if (isRelated(outcome)) {
    const where = countedBy.map(({ title }) => `“${title}”`).join(' and ') || 'the findings above';
    return (
      <span className="saving note">
        its {duration(claim ? decisiveSaving(claim).highNs : 0)} are counted under {where}
      </span>
    );
  }
  const saving = claim && decisiveSaving(claim);
  if (!saving || saving.highNs === 0) {
    const other = claim && otherSaving(claim);
    return <span className="saving note">{other || 'no saving of its own'}</span>;
  }
  const { lowNs, highNs, isUnrecorded } = saving;
  const per = isUnrecorded ? '/unrecorded step' : '/step';
  return (
    <span className="saving" title={otherSaving(claim) || undefined}>
      <span className="saving-words">
        <strong>saves up to {unbroken(duration(highNs))}</strong>
        {step.count > 0 ? per : ''}, {share(saving.share)}
      </span>
      <SavingBar low={(lowNs / highNs) * Math.min(1, saving.share)} high={saving.share} />
      <span className="note">{durationRange(lowNs, highNs)} likely</span>
    </span>
  );
}

/** A finding of one trace. */
export function Finding(props: Props): ReactNode {
  const { outcome, also, isOpen, onToggle } = props;
  const facts = outcome.evidence.length + outcome.tables.length + outcome.events.length;
  const severity = outcome.severity ?? 'info';
  return (
    <FindingFrame
      outcome={outcome}
      look={isRelated(outcome) ? 'covered' : severity}
      badge={
        isRelated(outcome) ? (
          <span className="muted">Related symptom</span>
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
          {also.length > 0 && <span>also in {plural(also.length, 'other trace')}</span>}
        </>
      }
      saving={<Saving {...props} />}
      isOpen={isOpen}
      onToggle={onToggle}
    >
      <FindingBody {...props} />
    </FindingFrame>
  );
}
