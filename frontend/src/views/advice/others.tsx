import type { ReactNode } from 'react';
import type { Outcome } from '../../api/types.gen';
import { count } from '../../core/format';
import { sentence } from '../../core/sentence';
import { Code } from '../../widgets/code';
import { Icon } from '../../widgets/icon';
import { Prose } from '../../widgets/prose';
import { byLack } from './outcomes';

interface Props {
  readonly outcomes: readonly Outcome[];
}

interface FoldProps extends Props {
  readonly title: string;
  readonly note: string;
  readonly isOpen?: boolean;
  readonly children: ReactNode;
}

function Fold({ title, note, outcomes, isOpen = false, children }: FoldProps): ReactNode {
  if (outcomes.length === 0) return null;
  return (
    <details className="fold" open={isOpen}>
      <summary>
        <Icon name="chevron" />
        <span className="fold-title">{title}</span>
        <span className="tag">{count(outcomes.length)}</span>
        <span className="fold-note">{note}</span>
      </summary>
      <ul>{children}</ul>
    </details>
  );
}

function Check({
  outcome,
  words,
}: {
  readonly outcome: Outcome;
  readonly words: string;
}): ReactNode {
  return (
    <li className="check">
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

/** Checks that found nothing wrong. */
export function Passed({ outcomes }: Props): ReactNode {
  return (
    <Fold title="Passed" note="looked for, and not found" outcomes={outcomes}>
      {outcomes.map((outcome) => (
        <Check key={outcome.rule} outcome={outcome} words={outcome.message} />
      ))}
    </Fold>
  );
}

interface NotApplicableProps extends Props {
  /** True where it is what the user should read next. */
  readonly isOpen: boolean;
}

/** Checks that this recording gives no ground for, by what they lack, with what would record it. */
export function NotApplicable({ outcomes, isOpen }: NotApplicableProps): ReactNode {
  return (
    <Fold
      title="Not applicable"
      note="the trace lacks what they look at"
      outcomes={outcomes}
      isOpen={isOpen}
    >
      {byLack(outcomes).map((lack) => (
        <li key={lack.reason + lack.remedy} className="lack">
          <div>
            <strong>
              <Prose text={sentence(lack.reason)} />
            </strong>
            <ul className="lack-rules">
              {lack.outcomes.map((outcome) => (
                <li key={outcome.rule} title={outcome.rule}>
                  {outcome.title}
                </li>
              ))}
            </ul>
          </div>
          {lack.remedy !== '' && <Code code={lack.remedy} />}
        </li>
      ))}
    </Fold>
  );
}

export function Suppressed({ outcomes }: Props): ReactNode {
  return (
    <Fold title="Suppressed" note="switched off by you" outcomes={outcomes}>
      {outcomes.map((outcome) => (
        <Check key={outcome.rule} outcome={outcome} words={outcome.reason ?? ''} />
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
