import type { ReactNode } from 'react';
import type { Outcome } from '../../api/types.gen';
import { count } from '../../core/format';
import { isCode, sentence } from '../../core/sentence';
import { useNavigation } from '../../state/navigation';
import { Code } from '../../widgets/code';
import { Fold } from '../../widgets/fold';
import { Goto } from '../../widgets/goto';
import { Icon } from '../../widgets/icon';
import { Prose } from '../../widgets/prose';
import { Doubts } from './doubts';
import { EvidenceFacts, EvidenceTables } from './evidence';
import { byLack } from './outcomes';

interface Props {
  readonly outcomes: readonly Outcome[];
}

function Check({
  outcome,
  words,
}: {
  readonly outcome: Outcome;
  readonly words: string;
}): ReactNode {
  return (
    <li className="check" data-rule={outcome.rule}>
      <span className={`check-title check-${outcome.status}`}>
        {outcome.status === 'passed' && <Icon name="passed" size={14} />}
        {outcome.title}
      </span>
      <span className="check-words">
        <Prose text={sentence(words)} />
      </span>
      <code className="rule-name">{outcome.rule}</code>
    </li>
  );
}

/** Whether a link leads to one of some checks. */
function useIsNamed(outcomes: readonly Outcome[]): boolean {
  const { location } = useNavigation();
  return outcomes.some((outcome) => outcome.rule === location.open);
}

/** Checks that found nothing wrong; apart from those whose word is worth less. */
export function Passed({ outcomes }: Props): ReactNode {
  const sure = outcomes.filter((outcome) => outcome.doubts.length === 0);
  return (
    <>
      <Fold
        title="Passed"
        note="looked for, and not found"
        size={sure.length}
        isOpen={useIsNamed(sure)}
      >
        {sure.map((outcome) => (
          <Check key={outcome.rule} outcome={outcome} words={outcome.message} />
        ))}
      </Fold>
      <PassedInDoubt outcomes={outcomes.filter((outcome) => outcome.doubts.length > 0)} />
    </>
  );
}

function PassedInDoubt({ outcomes }: Props): ReactNode {
  const doubts = [...new Set(outcomes.flatMap((outcome) => outcome.doubts))];
  return (
    <Fold
      title="Passed, but doubtful"
      note="not found in a damaged recording"
      size={outcomes.length}
      isOpen={useIsNamed(outcomes)}
    >
      <li>
        <Doubts doubts={doubts} />
      </li>
      {outcomes.map((outcome) => (
        <Check key={outcome.rule} outcome={outcome} words={outcome.message} />
      ))}
    </Fold>
  );
}

/** What looks like a fault and costs nothing here, with the numbers that acquit it. */
export function Rejected({ outcomes }: Props): ReactNode {
  return (
    <Fold
      title="Considered and rejected"
      note="looks like a fault, and costs nothing here"
      size={outcomes.length}
      isOpen={useIsNamed(outcomes)}
    >
      {outcomes.map((outcome) => (
        <li key={outcome.rule + outcome.message} className="rejected" data-rule={outcome.rule}>
          <p>
            <strong>{outcome.title}?</strong> <Prose text={outcome.message} />
          </p>
          <EvidenceFacts rows={outcome.evidence} />
          <EvidenceTables tables={outcome.tables} />
          <Goto to={{ open: outcome.rule }}>
            <code className="rule-name">{outcome.rule}</code>
          </Goto>
        </li>
      ))}
    </Fold>
  );
}

interface CannotTellProps extends Props {
  /** True where it is what the user should read next. */
  readonly isOpen: boolean;
}

/** Checks that cannot tell, by what they lack, with what would record it. */
export function CannotTell({ outcomes, isOpen }: CannotTellProps): ReactNode {
  return (
    <Fold
      title="Cannot tell"
      note="what they need was not recorded, or is damaged"
      size={outcomes.length}
      isOpen={useIsNamed(outcomes) || isOpen}
    >
      <Lacks outcomes={outcomes} />
    </Fold>
  );
}

/** Checks that are about something that this recording has nothing of. */
export function NotApplicable({ outcomes }: Props): ReactNode {
  return (
    <Fold
      title="Not applicable"
      note="there is nothing of what they are about"
      size={outcomes.length}
      isOpen={useIsNamed(outcomes)}
    >
      <Lacks outcomes={outcomes} />
    </Fold>
  );
}

function Lacks({ outcomes }: Props): ReactNode {
  return (
    <>
      {byLack(outcomes).map((lack) => (
        <li key={lack.reason + lack.remedy} className="lack">
          <div>
            <strong>
              <Prose text={sentence(lack.reason)} />
            </strong>
            <ul className="lack-rules">
              {lack.outcomes.map((outcome) => (
                <li key={outcome.rule} title={outcome.rule} data-rule={outcome.rule}>
                  {outcome.title}
                </li>
              ))}
            </ul>
          </div>
          {isCode(lack.remedy) ? (
            <Code code={lack.remedy} />
          ) : (
            <Prose text={sentence(lack.remedy)} />
          )}
        </li>
      ))}
    </>
  );
}

const BY: Readonly<Record<Outcome['suppressed_by'], string>> = {
  '': '',
  configuration: 'in the configuration',
  baseline: 'by the baseline',
  recording: 'by the program itself',
};

export function Suppressed({ outcomes }: Props): ReactNode {
  return (
    <Fold title="Put aside" note="found, and put aside with a reason" size={outcomes.length}>
      {outcomes.map((outcome) => (
        <Check
          key={outcome.rule + outcome.fingerprint}
          outcome={outcome}
          words={`${sentence(outcome.message)} Put aside ${BY[outcome.suppressed_by]}: ${outcome.reason ?? ''}`}
        />
      ))}
    </Fold>
  );
}

/** Checks that broke: never silent, and apart from what they would have said. */
export function Failed({ outcomes }: Props): ReactNode {
  if (outcomes.length === 0) return null;
  return (
    <section className="card failed" aria-label="Checks that failed">
      <h2>
        <Icon name="critical" /> {count(outcomes.length)}{' '}
        {outcomes.length === 1 ? 'check' : 'checks'} failed
      </h2>
      <p className="muted">
        A fault of stepscope, not of your code. Everything else on this page is unaffected.
      </p>
      <ul>
        {outcomes.map((outcome) => (
          <li key={outcome.rule}>
            <code className="rule-name">{outcome.rule}</code> {outcome.reason}
          </li>
        ))}
      </ul>
    </section>
  );
}
