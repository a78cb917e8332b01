import type { ReactNode } from 'react';
import type { Outcome } from '../../api/types.gen';
import { count } from '../../core/format';
import { Code } from '../../widgets/code';
import { Icon } from '../../widgets/icon';

interface Props {
  readonly outcomes: readonly Outcome[];
  /** True where it is what the user should read next. */
  readonly isOpen?: boolean;
}

interface FoldProps extends Props {
  readonly title: string;
  readonly note: string;
  readonly children: (outcome: Outcome) => ReactNode;
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
      <ul>
        {outcomes.map((outcome) => (
          <li key={outcome.rule}>
            <div className="other-head">
              <strong>{outcome.title}</strong>
              <code className="rule-name">{outcome.rule}</code>
            </div>
            {children(outcome)}
          </li>
        ))}
      </ul>
    </details>
  );
}

/** Checks that found nothing wrong. */
export function Passed({ outcomes }: Props): ReactNode {
  return (
    <Fold title="Passed" note="checked, and within bounds" outcomes={outcomes}>
      {(outcome) => outcome.message !== '' && <p>{outcome.message}</p>}
    </Fold>
  );
}

/** Checks that this recording gives no ground for, with what would. */
export function NotApplicable({ outcomes, isOpen = false }: Props): ReactNode {
  return (
    <Fold
      title="Not applicable"
      note="the trace lacks what they look at"
      outcomes={outcomes}
      isOpen={isOpen}
    >
      {(outcome) => (
        <>
          <p>{outcome.reason}</p>
          {outcome.remedy && <Code code={outcome.remedy} />}
        </>
      )}
    </Fold>
  );
}

export function Suppressed({ outcomes }: Props): ReactNode {
  return (
    <Fold title="Suppressed" note="switched off by you" outcomes={outcomes}>
      {(outcome) => <p>{outcome.reason}</p>}
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
