import type { ReactNode } from 'react';
import type { MergedOutcome, RelatedFinding, StepReport } from '../../../api/types.gen';
import { count, duration, durationRange, shareRange } from '../../../core/format';
import { dailySaving, hoursWords, type JobTerms, moneyWords } from '../../../core/job_saving';
import { rankLabel, type TraceRef } from '../../../core/traces';
import { NavigationScope, useNavigation } from '../../../state/navigation';
import { SeverityBadge } from '../../../widgets/badge';
import { Goto } from '../../../widgets/goto';
import { Picker } from '../../../widgets/picker';
import { FindingFrame, SavingRange } from '../finding';
import { FindingBody } from '../finding_body';
import { useCause } from '../links';

/** Least fraction of the step that counts as a saving. */
const LEAST_SHARE = 0.0005;

const ofRank = (traceRef: TraceRef, rule: string) => ({
  worker: traceRef.name,
  span: traceRef.span,
  open: rule,
  options: { about: 'rank' },
});

interface SavingProps {
  readonly merged: MergedOutcome;
  readonly terms: JobTerms;
}

function Saving({ merged, terms }: SavingProps): ReactNode {
  const { low_ns, high_ns, job_saving } = merged;
  if (!high_ns && !job_saving) {
    return <span className="saving note">no saving of its own</span>;
  }
  const isNothing = job_saving !== null && job_saving.high_share < LEAST_SHARE;
  const times = high_ns === null ? '' : `${durationRange(low_ns ?? 0, high_ns)} in a rank`;
  if (isNothing) {
    return (
      <span className="saving note" title="Other ranks bound the step">
        <span>no saving for the job on its own</span>
        <span>{times}</span>
      </span>
    );
  }
  if (!job_saving) return <strong className="saving">{times}</strong>;
  const { low_share, high_share } = job_saving;
  const daily = dailySaving(job_saving, terms);
  const perDay = daily ? [hoursWords(daily), moneyWords(daily)].filter(Boolean).join(', ') : '';
  return (
    <SavingRange
      words={`${shareRange(low_share, high_share)} of the step`}
      low={low_share}
      high={high_share}
      note={perDay ? `${perDay} per day` : times}
    />
  );
}

/** The ranks and steps of a finding; of the whole run, the ranks that are its cause. */
function Where({ merged: { outcome, where, when } }: Pick<LocationProps, 'merged'>): ReactNode {
  const cause = useCause(outcome);
  return (
    <span className="job-where">
      {where || cause || 'the whole run'}
      {when !== '' && `, ${when}`}
    </span>
  );
}

/** The findings of the ranks that are the cause. */
function Related(props: {
  readonly related: readonly RelatedFinding[];
  readonly moreCount: number;
  readonly traceRefs: ReadonlyMap<string, TraceRef>;
}): ReactNode {
  const { related, moreCount, traceRefs } = props;
  if (related.length === 0) return null;
  const isOne = related.every(
    (finding) => finding.where === related[0]?.where && finding.trace_count === 1,
  );
  return (
    <section>
      <h4>Findings of {isOne ? 'this rank' : 'these ranks'}</h4>
      <ul>
        {related.map((finding) => {
          const traceRef = traceRefs.get(finding.trace);
          const title = `${finding.where.replace(/^rank/, 'Rank')}: ${finding.title}`;
          return (
            <li key={`${finding.rule} ${finding.trace}`}>
              {traceRef ? <Goto to={ofRank(traceRef, finding.rule)}>{title}</Goto> : title}
              <span className="muted">
                {finding.high_ns !== null &&
                  ` saves ${durationRange(finding.low_ns ?? 0, finding.high_ns)} per step`}
                {finding.is_only_there
                  ? ', not in its peers'
                  : finding.peers_high_ns !== null &&
                    `, at most ${duration(finding.peers_high_ns)} in the median peer`}
              </span>
            </li>
          );
        })}
        {moreCount > 0 && <li className="muted">and {count(moreCount)} more</li>}
      </ul>
    </section>
  );
}

interface LocationProps {
  readonly merged: MergedOutcome;
  readonly traceRefs: ReadonlyMap<string, TraceRef>;
}

/** The affected ranks, with links to their traces. */
function Locations({ merged, traceRefs }: LocationProps): ReactNode {
  const { go } = useNavigation();
  const { outcome, where, when, ranks } = merged;
  const traces = merged.traces.length > 0 ? merged.traces : outcome.blamed;
  const affected = traces.flatMap((trace) => traceRefs.get(trace) ?? []);
  const worst = traceRefs.get(outcome.trace || (outcome.blamed[0] ?? ''));
  return (
    <div className="job-places wrap">
      <p>
        <strong>{where === '' ? 'The whole run' : where}</strong>
        {when !== '' && `, ${when}`}
        {ranks !== '' && !where.includes(ranks) && <span className="muted"> (ranks {ranks})</span>}
      </p>
      {worst && (
        <Goto to={ofRank(worst, outcome.rule)} className="button">
          {outcome.trace === '' ? 'Cause' : 'Worst'}: {rankLabel(worst)}
        </Goto>
      )}
      {affected.length > 1 && (
        <Picker
          label="Rank"
          value=""
          choices={[
            { key: '', label: `one of ${count(affected.length)}` },
            ...affected.map((finding) => ({
              key: finding.trace,
              label: rankLabel(finding),
              number: finding.rank,
              note: finding.rank === null ? `span ${finding.span}` : finding.name,
            })),
          ]}
          onChoose={(trace) => {
            const traceRef = traceRefs.get(trace);
            if (traceRef) go(ofRank(traceRef, outcome.rule));
          }}
        />
      )}
    </div>
  );
}

interface Props extends LocationProps {
  readonly run: string;
  readonly step: Pick<StepReport, 'count'>;
  readonly terms: JobTerms;
  readonly isOpen: boolean;
  readonly isDismissed: boolean;
  readonly onToggle: (isOpen: boolean) => void;
}

/** A finding of a job, with its ranks, steps and saving; its details are those of the worst trace. */
export function JobFinding({
  merged,
  traceRefs,
  run,
  step,
  terms,
  isOpen,
  isDismissed,
  onToggle,
}: Props): ReactNode {
  const { outcome } = merged;
  const worst = traceRefs.get(outcome.trace);
  const severity = outcome.severity ?? 'info';
  const body = (
    <FindingBody outcome={outcome} run={run} step={step} also={[]} isDismissed={isDismissed}>
      <Locations merged={merged} traceRefs={traceRefs} />
      <Related related={merged.related} moreCount={merged.related_more} traceRefs={traceRefs} />
    </FindingBody>
  );
  return (
    <FindingFrame
      outcome={outcome}
      look={severity}
      badge={<SeverityBadge severity={severity} />}
      where={<Where merged={merged} />}
      saving={<Saving merged={merged} terms={terms} />}
      isOpen={isOpen}
      onToggle={onToggle}
    >
      {worst ? (
        <NavigationScope place={{ worker: worst.name, span: worst.span }}>{body}</NavigationScope>
      ) : (
        body
      )}
    </FindingFrame>
  );
}
