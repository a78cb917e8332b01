import type { ReactNode } from 'react';
import type { ClaimReport, EventReference, Fix, Outcome, StepReport } from '../../api/types.gen';
import { decisiveSaving, otherSaving, shareWords, timeWords } from '../../core/claims';
import { diffOf } from '../../core/code_change';
import { count, duration, instant, plural, quantityExact } from '../../core/format';
import { shortName } from '../../core/names';
import type { TraceRef } from '../../core/traces';
import { useNavigation } from '../../state/navigation';
import { timelineLocation } from '../../state/timeline_location';
import { Button } from '../../widgets/button';
import { Code } from '../../widgets/code';
import { Copy } from '../../widgets/copy';
import { type Fact, Facts } from '../../widgets/facts';
import { Goto } from '../../widgets/goto';
import { Icon } from '../../widgets/icon';
import { PlainTable } from '../../widgets/plain_table';
import { Prose } from '../../widgets/prose';
import { SourceLine } from '../../widgets/source_line';
import { toast } from '../../widgets/toast';
import { lazyPage } from '../lazy_page';
import { dismissals } from './dismissed';
import { Doubts, EvidenceFacts, EvidenceTables } from './evidence';
import { LearnMore } from './learn_more';
import { useAffectedTraces } from './links';
import { EFFORT, findingMarkdown, RISK } from './markdown';
import { usePrinting } from './printing';

/** In a chunk of its own: closed findings draw no picture. */
const MiniTimeline = lazyPage(async () => ({
  default: (await import('./mini_timeline')).MiniTimeline,
}));
const MOST_EVENTS = 10;
const MOST_TRACES = 6;

function EventTable({ events }: { readonly events: readonly EventReference[] }): ReactNode {
  if (events.length === 0) return null;
  return (
    <section>
      <h4>Worst events</h4>
      <div className="scroll-x">
        <PlainTable
          className="plain events"
          rows={events.slice(0, MOST_EVENTS)}
          keyOf={({ event, track, start_ns, name }) => event ?? `${track} ${start_ns} ${name}`}
          columns={[
            {
              label: 'Event',
              className: 'mono event-name ellipsis',
              title: ({ name }) => name,
              cell: ({ name }) => shortName(name),
            },
            { label: 'Track', cell: ({ track }) => track },
            {
              label: 'Start',
              isNumber: true,
              title: ({ start_ns }) => quantityExact(start_ns, 'ns'),
              cell: ({ start_ns, duration_ns, event }) => (
                <Goto
                  to={timelineLocation(start_ns, start_ns + duration_ns, event)}
                  title="Show in the timeline"
                >
                  {instant(start_ns)}
                </Goto>
              ),
            },
            {
              label: 'Duration',
              isNumber: true,
              title: ({ duration_ns }) => quantityExact(duration_ns, 'ns'),
              cell: ({ duration_ns }) => duration(duration_ns),
            },
            { label: 'Detail', className: 'event-detail', cell: ({ detail }) => detail },
          ]}
        />
      </div>
    </section>
  );
}

function FixSection({ fix }: { readonly fix: Fix }): ReactNode {
  const { summary, code, language } = fix;
  const diff = language === 'python' ? diffOf(code) : null;
  return (
    <section>
      <h4>Fix</h4>
      <p>
        <Prose text={summary} />
      </p>
      {code !== '' && (
        <Code code={diff ?? code} language={diff ? 'diff' : language} copied={code} />
      )}
    </section>
  );
}

/** Effort and risk of the fix, and how to verify it. */
function Price({ outcome }: { readonly outcome: Outcome }): ReactNode {
  const { effort, risk, fix } = outcome;
  const facts: Fact[] = [
    effort && ['Effort', EFFORT[effort]],
    risk && ['Risk', RISK[risk]],
    fix && fix.verify !== '' && ['Verify', <Prose key="verify" text={fix.verify} />],
  ];
  return facts.some(Boolean) && <Facts className="price" facts={facts} />;
}

/** The caveats of the fix; on paper unfolded. */
function Caveats({ caveats }: { readonly caveats: readonly string[] }): ReactNode {
  const isPrinting = usePrinting();
  if (caveats.length === 0) return null;
  return (
    <details className="more" open={isPrinting}>
      <summary className="inline">
        <Icon name="chevron" size={14} /> {plural(caveats.length, 'caveat')}
      </summary>
      <ul>
        {caveats.map((caveat) => (
          <li key={caveat}>
            <Prose text={caveat} />
          </li>
        ))}
      </ul>
    </details>
  );
}

/** The steps and traces of the finding, and the origin of its rule. */
function Applicability({ outcome }: { readonly outcome: Outcome }): ReactNode {
  const { claim, life_cycle, package: origin } = outcome;
  const traces = useAffectedTraces(outcome);
  const facts: Fact[] = [
    claim !== null && claim.steps !== '' && ['Steps', claim.steps],
    traces !== '' && ['Found in', traces],
    life_cycle !== 'stable' && ['Rule', life_cycle],
    origin !== '' && ['From', origin],
  ];
  return facts.some(Boolean) && <Facts className="price" facts={facts} />;
}

function SourceLines({ lines }: { readonly lines: Outcome['locations'] }): ReactNode {
  if (lines.length === 0) return null;
  return (
    <section>
      <h4>In your code</h4>
      <ul className="stack-list">
        {lines.map((line) => (
          <li key={`${line.path}:${line.line}`}>
            <SourceLine path={line.path} line={line.line} of={line.function} parts={4} />
          </li>
        ))}
      </ul>
    </section>
  );
}

interface EstimateProps {
  readonly claim: ClaimReport;
  readonly step: Pick<StepReport, 'count'>;
}

/** What a finding saves alone, and how much of it other findings count. */
function estimateWords(claim: ClaimReport, hasSteps: boolean): string {
  const saving = decisiveSaving(claim);
  const { highNs, netHighNs } = saving;
  const other = otherSaving(claim) && `; ${otherSaving(claim)}`;
  if (highNs === 0) return `It saves nothing alone${other}.`;
  const alone = `Fixed alone, it saves ${timeWords(saving, hasSteps)} (${shareWords(saving, hasSteps)})`;
  if (netHighNs === highNs) return `${alone}${other}.`;
  const rest = netHighNs === 0 ? 'all' : duration(highNs - netHighNs);
  return `${alone}, of which other findings save ${rest} as well${other}.`;
}

function Estimate({ claim, step }: EstimateProps): ReactNode {
  return (
    <section>
      <h4>How this was estimated</h4>
      <p>
        <Prose text={claim.method} />
      </p>
      <p className="muted">{estimateWords(claim, step.count > 0)}</p>
    </section>
  );
}

interface OtherTracesProps {
  readonly also: readonly TraceRef[];
  readonly rule: string;
}

function OtherTraces({ also, rule }: OtherTracesProps): ReactNode {
  if (also.length === 0) return null;
  return (
    <p className="also">
      Also found on{' '}
      {also.slice(0, MOST_TRACES).map(({ trace, name, span }, at) => (
        <span key={trace}>
          {at > 0 && ', '}
          <Goto to={{ worker: name, span, open: rule }}>
            {name} span {span}
          </Goto>
        </span>
      ))}
      {also.length > MOST_TRACES && ` and ${count(also.length - MOST_TRACES)} more`}.
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
  readonly also: readonly TraceRef[];
  readonly isDismissed?: boolean;
  /** The affected ranks. */
  readonly children?: ReactNode;
}

/** The details of a finding: fix, source lines, picture, measurements, estimate, caveats. */
export function FindingBody(props: Props): ReactNode {
  const { outcome, run, step, also, isDismissed = false, children } = props;
  const { href } = useNavigation();
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
      <Doubts doubts={outcome.doubts} />
      <div className="finding-columns">
        <div>
          {outcome.fix && <FixSection fix={outcome.fix} />}
          <Price outcome={outcome} />
        </div>
        <div>
          {children}
          <SourceLines lines={outcome.locations} />
          <MiniTimeline outcome={outcome} />
        </div>
      </div>
      <div className="finding-columns">
        <section>
          <h4>Measured</h4>
          <p className="finding-message">
            <Prose text={outcome.message} />
          </p>
          <p>
            <Prose text={outcome.why} />
          </p>
          <Applicability outcome={outcome} />
        </section>
        <div>
          {outcome.evidence.length > 0 && (
            <section>
              <h4>Evidence</h4>
              <EvidenceFacts rows={outcome.evidence} />
            </section>
          )}
        </div>
      </div>
      <EvidenceTables tables={outcome.tables} />
      <EventTable events={outcome.events} />
      {outcome.claim && <Estimate claim={outcome.claim} step={step} />}
      {outcome.fix && <Caveats caveats={outcome.fix.caveats} />}
      <LearnMore rule={outcome.rule} />
      <footer>
        <OtherTraces also={also} rule={outcome.rule} />
        <Links links={outcome.links} />
        <span className="space" />
        {outcome.claim && outcome.trace !== '' && (
          <Goto
            to={{
              view: 'whatif',
              worker: outcome.worker,
              span: outcome.span,
              options: { fix: outcome.rule },
            }}
            className="button"
            title="Simulate the step without this finding"
          >
            <Icon name="sliders" size={14} /> What if this were fixed
          </Goto>
        )}
        <code className="rule-name">{outcome.rule}</code>
        {isDismissed ? (
          <Button onClick={() => dismissals.restore(outcome)}>
            <Icon name="undo" size={14} /> Restore
          </Button>
        ) : (
          <Button title="Dismiss in this browser; it stays listed below" onClick={dismiss}>
            <Icon name="close" size={14} /> Dismiss
          </Button>
        )}
        <Copy text={markdown} label="Copy as Markdown" />
      </footer>
    </div>
  );
}
