/** The findings of the advice with their positions in time. */
import type { ReactNode } from 'react';
import type { Outcome } from '../../api/types.gen';
import { decisiveSaving } from '../../core/claims';
import { durationRange, plural } from '../../core/format';
import { SeverityBadge } from '../../widgets/badge';
import { Goto } from '../../widgets/goto';
import { Icon } from '../../widgets/icon';
import type { ShownFinding } from './overlay';

/** The findings of this trace that name events. */
export const findingsOf = (outcomes: readonly Outcome[], trace: string): readonly Outcome[] =>
  outcomes.filter(
    (outcome) => outcome.trace === trace && outcome.status === 'found' && outcome.events.length > 0,
  );

export function shownFinding({ events }: Outcome): ShownFinding {
  return {
    spans: events.map(({ start_ns, duration_ns }) => ({
      start: start_ns,
      end: start_ns + Math.max(1, duration_ns),
    })),
    events: new Set(events.flatMap(({ event }) => (event === null ? [] : [event]))),
  };
}

interface Props {
  readonly findings: readonly Outcome[] | undefined;
  readonly open: string | null;
  readonly onHover: (finding: Outcome | null) => void;
  readonly onChoose: (finding: Outcome) => void;
}

function SavingTime({ claim }: Pick<Outcome, 'claim'>): ReactNode {
  const { lowNs, highNs } = claim ? decisiveSaving(claim) : { lowNs: 0, highNs: 0 };
  return highNs > 0 ? <span>saves {durationRange(lowNs, highNs)}</span> : null;
}

export function FindingsTab({ findings, open, onHover, onChoose }: Props): ReactNode {
  if (findings === undefined) return <p className="panel-body muted">Reading…</p>;
  if (findings.length === 0) {
    return (
      <p className="panel-body muted">
        No finding names an event of this trace. <Goto to={{ view: 'advice' }}>Advice</Goto>
      </p>
    );
  }
  return (
    <ul className="panel-body link-list" aria-label="Findings">
      {findings.map((finding) => (
        <li key={`${finding.rule} ${finding.message}`} className="row">
          <button
            type="button"
            className="finding-row option flex"
            style={{ flex: 1 }}
            aria-pressed={finding.rule === open}
            onPointerEnter={() => onHover(finding)}
            onPointerLeave={() => onHover(null)}
            onFocus={() => onHover(finding)}
            onBlur={() => onHover(null)}
            onClick={() => onChoose(finding)}
          >
            <SeverityBadge severity={finding.severity ?? 'info'} />
            <span className="finding-row-title">{finding.title}</span>
            <SavingTime claim={finding.claim} />
            <span className="link-note">{plural(finding.events.length, 'event')}</span>
          </button>
          <Goto
            to={{ view: 'advice', open: finding.rule }}
            className="button quiet square"
            title="Show in the advice"
          >
            <Icon name="advice" size={14} />
            <span className="visually-hidden">Show {finding.title} in the advice</span>
          </Goto>
        </li>
      ))}
    </ul>
  );
}
