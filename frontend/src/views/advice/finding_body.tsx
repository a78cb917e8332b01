import type { ReactNode } from 'react';
import type { ClaimReport, EventReference, Fix, Outcome, StepReport } from '../../api/types.gen';
import { count, duration, durationRange, instant, quantityExact, share } from '../../core/format';
import { shortName } from '../../core/names';
import type { Recording } from '../../core/recordings';
import { useNavigation } from '../../state/navigation';
import { timelinePlace } from '../../state/timeline_place';
import { Code } from '../../widgets/code';
import { Copy } from '../../widgets/copy';
import { Goto } from '../../widgets/goto';
import { Icon } from '../../widgets/icon';
import { Prose } from '../../widgets/prose';
import { SourceLine } from '../../widgets/source_line';
import { toast } from '../../widgets/toast';
import { dismissals } from './dismissed';
import { Doubts } from './doubts';
import { EvidenceFacts, EvidenceTables } from './evidence';
import { LearnMore } from './learn_more';
import { findingMarkdown } from './markdown';
import { MiniTimeline } from './mini_timeline';
import { useFoundIn } from './place';
import { EFFORT, RISK } from './price';

const MOST_EVENTS = 10;
const MOST_PLACES = 6;

function EventTable({ events }: { readonly events: readonly EventReference[] }): ReactNode {
  if (events.length === 0) return null;
  return (
    <section>
      <h4>Worst events</h4>
      <div className="scroll-x">
        <table className="plain events">
          <thead>
            <tr>
              <th scope="col">Event</th>
              <th scope="col">Track</th>
              <th scope="col" className="number">
                At
              </th>
              <th scope="col" className="number">
                Duration
              </th>
              <th scope="col">Detail</th>
            </tr>
          </thead>
          <tbody>
            {events.slice(0, MOST_EVENTS).map((event) => (
              <tr key={event.event ?? `${event.track} ${event.start_ns} ${event.name}`}>
                <td className="mono event-name" title={event.name}>
                  {shortName(event.name)}
                </td>
                <td>{event.track}</td>
                <td className="number" title={quantityExact(event.start_ns, 'ns')}>
                  <Goto
                    to={timelinePlace(
                      event.start_ns,
                      event.start_ns + event.duration_ns,
                      event.event,
                    )}
                    title="Show in the timeline"
                  >
                    {instant(event.start_ns)}
                  </Goto>
                </td>
                <td className="number" title={quantityExact(event.duration_ns, 'ns')}>
                  {duration(event.duration_ns)}
                </td>
                <td className="event-detail">{event.detail}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}

function FixSection({ fix }: { readonly fix: Fix }): ReactNode {
  return (
    <section className="fix">
      <h4>Fix</h4>
      <p>
        <Prose text={fix.summary} />
      </p>
      {fix.code !== '' && <Code code={fix.code} language={fix.language} />}
      {fix.verify !== '' && (
        <>
          <h4>How to see that it worked</h4>
          <p>
            <Prose text={fix.verify} />
          </p>
        </>
      )}
      {fix.caveats.length > 0 && (
        <>
          <h4>Mind</h4>
          <ul>
            {fix.caveats.map((caveat) => (
              <li key={caveat}>
                <Prose text={caveat} />
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}

interface HoldsProps {
  readonly outcome: Outcome;
}

/** What the fix takes, what it may change beside the time, and for which steps and ranks it was found. */
function Holds({ outcome }: HoldsProps): ReactNode {
  const { effort, risk, claim } = outcome;
  const where = useFoundIn(outcome);
  const facts: readonly (readonly [string, string])[] = [
    ['Effort', effort ? EFFORT[effort] : ''],
    ['Risk', risk ? RISK[risk] : ''],
    ['Steps', claim?.steps ?? ''],
    ['Found in', where],
  ];
  const known = facts.filter(([, words]) => words !== '');
  if (known.length === 0) return null;
  return (
    <dl className="price">
      {known.map(([name, words]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{words}</dd>
        </div>
      ))}
    </dl>
  );
}

function SourceLines({ lines }: { readonly lines: Outcome['locations'] }): ReactNode {
  if (lines.length === 0) return null;
  return (
    <section>
      <h4>In your code</h4>
      <ul className="source-lines">
        {lines.map((line) => (
          <li key={`${line.path}:${line.line}`}>
            <SourceLine path={line.path} line={line.line} of={line.function} parts={4} />
          </li>
        ))}
      </ul>
    </section>
  );
}

interface ReckoningProps {
  readonly claim: ClaimReport;
  readonly step: Pick<StepReport, 'count'>;
}

function Reckoning({ claim, step }: ReckoningProps): ReactNode {
  const per = step.count > 0 ? 'per step' : 'over the window';
  return (
    <section>
      <h4>How the saving was reckoned</h4>
      <p>
        <Prose text={claim.method} />
      </p>
      <p className="muted">
        {claim.net_high_ns === 0
          ? `Alone ${duration(claim.gross_ns)} ${per}, none of which is counted a second time.`
          : `Alone ${duration(claim.gross_ns)} ${per}; ${durationRange(claim.net_low_ns, claim.net_high_ns)} (${share(claim.net_share)}) once time that other findings also claim has been given to one.`}
      </p>
    </section>
  );
}

interface AlsoProps {
  readonly also: readonly Recording[];
  readonly rule: string;
}

function AlsoFound({ also, rule }: AlsoProps): ReactNode {
  if (also.length === 0) return null;
  return (
    <p className="also">
      Also found on{' '}
      {also.slice(0, MOST_PLACES).map(({ trace, name, span }, at) => (
        <span key={trace}>
          {at > 0 && ', '}
          <Goto to={{ worker: name, span, open: rule }}>
            {name} span {span}
          </Goto>
        </span>
      ))}
      {also.length > MOST_PLACES && ` and ${count(also.length - MOST_PLACES)} more`}.
    </p>
  );
}

function Links({ links }: { readonly links: readonly string[] }): ReactNode {
  if (links.length === 0) return null;
  return (
    <ul className="links" aria-label="Read more">
      {links.map((link) => (
        <li key={link}>
          {/^https?:\/\//.test(link) ? (
            <a href={link} target="_blank" rel="noreferrer noopener">
              {link.replace(/^https?:\/\//, '')} <Icon name="external" size={13} />
            </a>
          ) : (
            <Goto to={{ open: link }}>{link}</Goto>
          )}
        </li>
      ))}
    </ul>
  );
}

interface Props {
  readonly outcome: Outcome;
  readonly run: string;
  readonly step: Pick<StepReport, 'count'>;
  readonly also: readonly Recording[];
  readonly isDismissed?: boolean;
  /** What stands before everything else. */
  readonly children?: ReactNode;
}

/** The event that costs most; else the time that a piece of evidence names. */
function worstOf({ events, evidence, title }: Outcome): EventReference | undefined {
  if (events[0]) return events[0];
  for (const { label, link } of evidence) {
    const { start_ns: start, end_ns: end } = link ?? {};
    if (typeof start !== 'number' || typeof end !== 'number' || end <= start) continue;
    return {
      name: label,
      track: title,
      start_ns: start,
      duration_ns: end - start,
      detail: '',
      event: null,
    };
  }
  return undefined;
}

/** An open finding: what was measured and why it costs at the left, what to change at the right. */
export function FindingBody(props: Props): ReactNode {
  const { outcome, run, step, also, isDismissed = false, children } = props;
  const { href } = useNavigation();
  const worst = worstOf(outcome);
  const dismiss = (): void => {
    dismissals.dismiss(outcome);
    toast(`Dismissed “${outcome.title}”`, { undo: () => dismissals.restore(outcome) });
  };
  const markdown = (): string =>
    findingMarkdown(outcome, {
      run,
      perStep: step.count > 0,
      link: href({ worker: outcome.worker, span: outcome.span, open: outcome.rule }),
    });
  return (
    <div className="finding-body">
      {children}
      <Doubts doubts={outcome.doubts} />
      <div className="finding-columns">
        <div>
          <p className="finding-message">
            <Prose text={outcome.message} />
          </p>
          <p>
            <Prose text={outcome.why} />
          </p>
          {outcome.evidence.length > 0 && (
            <section>
              <h4>Evidence</h4>
              <EvidenceFacts rows={outcome.evidence} />
            </section>
          )}
          {outcome.claim && <Reckoning claim={outcome.claim} step={step} />}
        </div>
        <div>
          {outcome.fix && <FixSection fix={outcome.fix} />}
          <Holds outcome={outcome} />
        </div>
      </div>
      {worst && outcome.trace !== '' && <MiniTimeline trace={outcome.trace} event={worst} />}
      <EvidenceTables tables={outcome.tables} />
      <SourceLines lines={outcome.locations} />
      <EventTable events={outcome.events} />
      <LearnMore rule={outcome.rule} />
      <footer>
        <AlsoFound also={also} rule={outcome.rule} />
        <Links links={outcome.links} />
        <span className="space" />
        <code className="rule-name">{outcome.rule}</code>
        {isDismissed ? (
          <button type="button" className="button" onClick={() => dismissals.restore(outcome)}>
            <Icon name="undo" size={14} /> Restore
          </button>
        ) : (
          <button
            type="button"
            className="button"
            title="Put aside in this browser; it stays listed below"
            onClick={dismiss}
          >
            <Icon name="close" size={14} /> Dismiss
          </button>
        )}
        <Copy text={markdown} label="Copy as Markdown" />
      </footer>
    </div>
  );
}
