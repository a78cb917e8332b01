/** Everything but the findings of this trace: other traces, ruled out, passed, inconclusive, suppressed, failed. */
import type { ReactNode } from 'react';
import type { Outcome } from '../../api/types.gen';
import { decisiveSaving } from '../../core/claims';
import { durationRange, plural } from '../../core/format';
import { isCode, sentence } from '../../core/sentence';
import { useNavigation } from '../../state/navigation';
import { SeverityBadge } from '../../widgets/badge';
import { Code } from '../../widgets/code';
import { Fold } from '../../widgets/fold';
import { Goto } from '../../widgets/goto';
import { Icon } from '../../widgets/icon';
import { Prose } from '../../widgets/prose';
import { Doubts, EvidenceFacts, EvidenceTables } from './evidence';
import { openRules } from './opened';
import { byMissingData } from './outcomes';

interface Props {
  readonly outcomes: readonly Outcome[];
}

/** Findings of other traces of the run. */
export function Elsewhere({ outcomes }: Props): ReactNode {
  if (outcomes.length === 0) return null;
  return (
    <section className="elsewhere" aria-labelledby="elsewhere">
      <h2 id="elsewhere">Found in other traces of this run</h2>
      <ul className="framed">
        {outcomes.map(({ rule, worker, span, severity, title, claim }) => (
          <li key={rule}>
            <Goto to={{ worker, span, open: rule }} className="option">
              <SeverityBadge severity={severity ?? 'info'} />
              <span className="grow strong">{title}</span>
              <span className="muted">
                {worker} span {span}
              </span>
              {claim && decisiveSaving(claim).highNs > 0 && (
                <span>
                  saves {durationRange(decisiveSaving(claim).lowNs, decisiveSaving(claim).highNs)}
                </span>
              )}
              <Icon name="arrow" size={14} />
            </Goto>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Whether a link names one of some checks. */
function useIsLinked(outcomes: readonly Outcome[]): boolean {
  const rules = openRules(useNavigation().location.open);
  return outcomes.some(({ rule }) => rules.includes(rule));
}

interface ChecksProps extends Props {
  readonly title: string;
  readonly note: string;
  readonly isOpen?: boolean;
  readonly children: ReactNode;
}

/** A fold of checks, open if a link names one of them. */
function Checks({ outcomes, isOpen = false, ...fold }: ChecksProps): ReactNode {
  return <Fold {...fold} size={outcomes.length} isOpen={useIsLinked(outcomes) || isOpen} />;
}

/** A check that passed, by its own name: its title names the fault that it looks for. */
function PassedCheck({ outcome }: { readonly outcome: Outcome }): ReactNode {
  return (
    <li className="check" data-rule={outcome.rule}>
      <span className="flex">
        <Icon name="passed" size={14} />
        <span>
          <Prose text={sentence(outcome.message || `Not found: ${outcome.title}`)} />
        </span>
      </span>
      <code className="rule-name">{outcome.rule}</code>
    </li>
  );
}

/** Checks that passed; those that depend on damaged parts of the trace stand apart. */
export function Passed({ outcomes }: Props): ReactNode {
  const sure = outcomes.filter((outcome) => outcome.doubts.length === 0);
  const doubtful = outcomes.filter((outcome) => outcome.doubts.length > 0);
  const doubts = [...new Set(doubtful.flatMap((outcome) => outcome.doubts))];
  return (
    <>
      <Checks title="Passed" note="checks without a finding" outcomes={sure}>
        {sure.map((outcome) => (
          <PassedCheck key={outcome.rule} outcome={outcome} />
        ))}
      </Checks>
      <Checks
        title="Passed, but doubtful"
        note="checks that depend on damaged parts of the trace"
        outcomes={doubtful}
      >
        <li>
          <Doubts doubts={doubts} />
        </li>
        {doubtful.map((outcome) => (
          <PassedCheck key={outcome.rule} outcome={outcome} />
        ))}
      </Checks>
    </>
  );
}

/** Suspected faults that cost nothing here, with the evidence. */
export function RuledOut({ outcomes }: Props): ReactNode {
  return (
    <Checks title="Ruled out" note="suspected faults that cost nothing here" outcomes={outcomes}>
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
    </Checks>
  );
}

interface InconclusiveProps extends Props {
  readonly isOpen: boolean;
}

/** Inconclusive checks by what is missing, with the code that records it. */
export function Inconclusive({ outcomes, isOpen }: InconclusiveProps): ReactNode {
  return (
    <Checks
      title="Inconclusive"
      note="the data that these checks need was not recorded, or is damaged"
      outcomes={outcomes}
      isOpen={isOpen}
    >
      <MissingDataList outcomes={outcomes} />
    </Checks>
  );
}

export function NotApplicable({ outcomes }: Props): ReactNode {
  return (
    <Checks
      title="Not applicable"
      note="the trace has nothing that these checks concern"
      outcomes={outcomes}
    >
      <MissingDataList outcomes={outcomes} />
    </Checks>
  );
}

function MissingDataList({ outcomes }: Props): ReactNode {
  return byMissingData(outcomes).map((missing) => (
    <li key={missing.reason + missing.remedy} className="lack">
      <div>
        <strong>
          <Prose text={sentence(missing.reason)} />
        </strong>
        <ul className="lack-rules">
          {missing.outcomes.map((outcome) => (
            <li key={outcome.rule} title={outcome.rule} data-rule={outcome.rule}>
              {outcome.title}
            </li>
          ))}
        </ul>
      </div>
      {isCode(missing.remedy) ? (
        <Code code={missing.remedy} />
      ) : (
        <Prose text={sentence(missing.remedy)} />
      )}
    </li>
  ));
}

const SUPPRESSED_BY: Readonly<Record<Outcome['suppressed_by'], string>> = {
  '': '',
  configuration: 'in the configuration',
  baseline: 'by the baseline',
  recording: 'by the program',
};

export function Suppressed({ outcomes }: Props): ReactNode {
  return (
    <Fold title="Suppressed" note="findings suppressed with a reason" size={outcomes.length}>
      {outcomes.map((outcome) => (
        <li key={outcome.rule + outcome.fingerprint} className="check" data-rule={outcome.rule}>
          <span>{outcome.title}</span>
          <span className="check-words">
            <Prose
              text={`${sentence(outcome.message)} ${sentence(`Suppressed ${SUPPRESSED_BY[outcome.suppressed_by]}: ${outcome.reason ?? ''}`)}`}
            />
          </span>
          <code className="rule-name">{outcome.rule}</code>
        </li>
      ))}
    </Fold>
  );
}

/** Checks that raised an error. */
export function Failed({ outcomes }: Props): ReactNode {
  if (outcomes.length === 0) return null;
  return (
    <section className="card failed" aria-label="Checks that failed">
      <h2>
        <Icon name="critical" /> {plural(outcomes.length, 'check')} failed
      </h2>
      <p className="muted">
        This is a bug in stepscope, not in your code. The rest of this page is unaffected.
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
