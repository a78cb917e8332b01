import { type KeyboardEvent, type ReactNode, useId } from 'react';
import type { Outcome, StepReport } from '../../api/types.gen';
import { type DecisiveSaving, decisiveSaving, otherSaving, shareWords } from '../../core/claims';
import { duration, durationRange, unbroken } from '../../core/format';
import { movedIndex } from '../../core/list_keys';
import type { TraceRef } from '../../core/traces';
import { SeverityBadge } from '../../widgets/badge';
import { Icon } from '../../widgets/icon';
import { Prose } from '../../widgets/prose';
import { pathEnd } from '../../widgets/source_line';
import { FindingBody } from './finding_body';
import { useCause } from './links';
import { SHORT_EFFORT } from './markdown';

/** The arrow keys move between the rows, Home and End to the first and the last. */
function moveBetweenRows(event: KeyboardEvent<HTMLButtonElement>): void {
  if (!/^(ArrowUp|ArrowDown|Home|End)$/.test(event.key)) return;
  const head = event.currentTarget;
  const all = head.closest('.advice')?.querySelectorAll<HTMLElement>('.finding-head') ?? [];
  const heads = [...all].filter((other) => !other.closest('details:not([open])'));
  const next = movedIndex(event.key, heads.indexOf(head), heads.length);
  if (next === null) return;
  event.preventDefault();
  heads[next]?.focus();
}

/** The first source line, and how many more there are: `train.py:12 +1`. */
function SourceLineOf({ lines }: { readonly lines: Outcome['locations'] }): ReactNode {
  const [first, ...others] = lines;
  if (!first) return null;
  const name = pathEnd(first.path, 1).replace(/^…\//, '');
  return (
    <span className="mono">
      {first.line > 0 ? `${name}:${first.line}` : name}
      {others.length > 0 && ` +${others.length}`}
    </span>
  );
}

interface FrameProps {
  readonly outcome: Outcome;
  /** The colour of its edge: a severity, or `covered` for related symptoms. */
  readonly look: string;
  readonly badge: ReactNode;
  /** The affected ranks and steps. */
  readonly where?: ReactNode;
  readonly saving: ReactNode;
  readonly isOpen: boolean;
  readonly onToggle: (isOpen: boolean) => void;
  /** Rendered only while it is open. */
  readonly children: ReactNode;
}

/** A finding of a trace or of a job: a row with its fix, which opens the details below it. */
export function FindingFrame(props: FrameProps): ReactNode {
  const { outcome, look, badge, where, saving, isOpen, onToggle, children } = props;
  const { confidence, effort, doubts } = outcome;
  const id = useId();
  return (
    <li data-rule={outcome.rule} className={`finding finding-${look}`}>
      <h3>
        <button
          type="button"
          className="finding-head option-row"
          aria-expanded={isOpen}
          aria-controls={id}
          onClick={() => onToggle(!isOpen)}
          onKeyDown={moveBetweenRows}
        >
          {badge}
          <span className="finding-words">
            <span className="finding-title">{outcome.title}</span>{' '}
            <span className="finding-where note">
              {doubts.length > 0 && <span className="doubtful">doubtful</span>} {where}{' '}
              <SourceLineOf lines={outcome.locations} />
            </span>
            <span className="finding-fix ellipsis muted">
              <Prose text={outcome.fix?.summary ?? outcome.message} />
            </span>
          </span>
          {saving}
          <span className="finding-meta note">
            {confidence && <span>{confidence} confidence</span>}
            {effort && <span>effort: {SHORT_EFFORT[effort]}</span>}
          </span>
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

interface SavingRangeProps {
  /** The saving as a part of the step. */
  readonly words: string;
  readonly low: number;
  readonly high: number;
  /** The saving as a time. */
  readonly note: ReactNode;
  readonly title?: string | undefined;
}

/** The potential saving: in words and as a bar of low and high fraction, 0 to 1. */
export function SavingRange({ words, low, high, note, title }: SavingRangeProps): ReactNode {
  const width = (part: number): string => `${Math.min(1, part) * 100}%`;
  return (
    <span className="saving" title={title}>
      <span>
        <span className="visually-hidden">saves </span>
        <strong>{unbroken(words)}</strong>
      </span>
      <span className="saving-time">
        <span className="saving-track track" aria-hidden="true">
          <span className="saving-high" style={{ width: width(high) }} />
          <span className="saving-low" style={{ width: width(low) }} />
        </span>
        <span className="note">{note}</span>
      </span>
    </span>
  );
}

interface Props {
  readonly outcome: Outcome;
  readonly run: string;
  readonly step: StepReport;
  /** Other traces with the same finding. */
  readonly also: readonly TraceRef[];
  readonly isRelated: boolean;
  /** The findings that already count the time of a related symptom. */
  readonly countedBy: readonly Outcome[];
  readonly isOpen: boolean;
  readonly onToggle: (isOpen: boolean) => void;
  readonly isDismissed: boolean;
}

/** The findings that count the time of a related symptom. */
function CountedUnder({
  saving,
  countedBy,
}: { saving: DecisiveSaving } & Pick<Props, 'countedBy'>) {
  const names = countedBy.map(({ title }) => `“${title}”`).join(' and ') || 'the findings above';
  return (
    <span className="saving note">
      its {duration(saving.highNs)} are counted under {names}
    </span>
  );
}

function Saving({ outcome, step, isRelated, countedBy }: Props): ReactNode {
  const { claim } = outcome;
  const saving = claim && decisiveSaving(claim);
  const other = claim ? otherSaving(claim) : '';
  if (!saving || saving.highNs === 0) {
    return <span className="saving note">{other || 'no saving of its own'}</span>;
  }
  if (isRelated) return <CountedUnder saving={saving} countedBy={countedBy} />;
  return (
    <SavingRange
      words={shareWords(saving, step.count > 0)}
      low={saving.lowShare}
      high={saving.share}
      note={durationRange(saving.lowNs, saving.highNs)}
      title={other || undefined}
    />
  );
}

/** A finding of one trace. */
export function Finding(props: Props): ReactNode {
  const { outcome, isRelated, isOpen, onToggle } = props;
  const severity = outcome.severity ?? 'info';
  return (
    <FindingFrame
      outcome={outcome}
      look={isRelated ? 'covered' : severity}
      badge={
        isRelated ? <span className="note">Symptom</span> : <SeverityBadge severity={severity} />
      }
      where={useCause(outcome)}
      saving={<Saving {...props} />}
      isOpen={isOpen}
      onToggle={onToggle}
    >
      <FindingBody {...props} />
    </FindingFrame>
  );
}
