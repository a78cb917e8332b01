import type { ReactNode } from 'react';
import type { MergedOutcome, RelatedFinding, StepReport } from '../../../api/types.gen';
import { count, duration, durationRange, share } from '../../../core/format';
import { dailySaving, hoursWords, type JobTerms, moneyWords } from '../../../core/job_saving';
import { type Recording, recordingName } from '../../../core/recordings';
import { useNavigation, Within } from '../../../state/navigation';
import { SeverityBadge } from '../../../widgets/badge';
import { Goto } from '../../../widgets/goto';
import { Picker } from '../../../widgets/picker';
import { FindingBody } from '../finding_body';
import { FindingFrame } from '../finding_frame';

/** Of the step: less would be told as nothing. */
const LEAST_SHARE = 0.0005;

const ofRank = (recording: Recording, rule: string) => ({
  worker: recording.name,
  span: recording.span,
  open: rule,
  options: { about: 'rank' },
});

function Saving({
  merged,
  terms,
}: {
  readonly merged: MergedOutcome;
  readonly terms: JobTerms;
}): ReactNode {
  const { net_low_ns, net_high_ns, job_saving } = merged;
  const isNothing = job_saving !== null && job_saving.high_share < LEAST_SHARE;
  const daily = job_saving && !isNothing && dailySaving(job_saving, terms);
  const money = daily ? moneyWords(daily) : '';
  if (!net_high_ns && !job_saving)
    return <span className="saving saving-none">no saving of its own</span>;
  const wide = (of: number): string => `${Math.min(1, of) * 100}%`;
  return (
    <span className="saving" title={isNothing ? 'Other ranks bound the step' : undefined}>
      <span className="saving-words">
        {isNothing ? (
          'nothing for the job by itself'
        ) : job_saving ? (
          <strong>up to {share(job_saving.high_share)} of the job</strong>
        ) : (
          <strong>up to {duration(net_high_ns ?? 0)}/step</strong>
        )}
      </span>
      {job_saving && !isNothing && (
        <span className="saving-track" aria-hidden="true">
          <span className="saving-high" style={{ width: wide(job_saving.high_share) }} />
          <span className="saving-low" style={{ width: wide(job_saving.low_share) }} />
        </span>
      )}
      <span className="saving-range">
        {daily && `${hoursWords(daily)}${money === '' ? '' : `, ${money}`} a day`}
        {!daily &&
          net_high_ns !== null &&
          `${durationRange(net_low_ns ?? 0, net_high_ns)} a step in a rank`}
      </span>
    </span>
  );
}

/** What the ranks that are blamed have to say of themselves: the cause behind what the others see. */
function Related(props: {
  readonly related: readonly RelatedFinding[];
  readonly moreCount: number;
  readonly recordings: ReadonlyMap<string, Recording>;
}): ReactNode {
  const { related, moreCount, recordings } = props;
  if (related.length === 0) return null;
  const isOne = related.every((each) => each.where === related[0]?.where && each.trace_count === 1);
  return (
    <section className="job-related">
      <h4>What {isOne ? 'it says of itself' : 'they say of themselves'}</h4>
      <ul>
        {related.map((each) => {
          const recording = recordings.get(each.trace);
          const title = `${each.where.replace(/^rank/, 'Rank')}: ${each.title}`;
          return (
            <li key={`${each.rule} ${each.trace}`}>
              {recording ? <Goto to={ofRank(recording, each.rule)}>{title}</Goto> : title}
              <span className="muted">
                {each.net_high_ns !== null && ` up to ${duration(each.net_high_ns)} a step`}
                {each.is_only_there
                  ? ', in none of its peers'
                  : each.peers_net_high_ns !== null &&
                    `, ${duration(each.peers_net_high_ns)} in the median peer`}
              </span>
            </li>
          );
        })}
        {moreCount > 0 && <li className="muted">and {count(moreCount)} more</li>}
      </ul>
    </section>
  );
}

interface PlacesProps {
  readonly merged: MergedOutcome;
  readonly recordings: ReadonlyMap<string, Recording>;
}

/** Where it holds, and a way to each of these recordings. */
function Places({ merged, recordings }: PlacesProps): ReactNode {
  const { go } = useNavigation();
  const { outcome, where, when, ranks } = merged;
  const traces = merged.traces.length > 0 ? merged.traces : outcome.blamed;
  const found = traces.flatMap((trace) => recordings.get(trace) ?? []);
  const worst = recordings.get(outcome.trace || (outcome.blamed[0] ?? ''));
  return (
    <div className="job-places">
      <p>
        <strong>{where === '' ? 'The run as a whole' : where}</strong>
        {when !== '' && `, ${when}`}
        {ranks !== '' && !where.includes(ranks) && <span className="muted"> (ranks {ranks})</span>}
      </p>
      {worst && (
        <Goto to={ofRank(worst, outcome.rule)} className="button">
          {outcome.trace === '' ? 'The cause' : 'The worst'}: {recordingName(worst)}
        </Goto>
      )}
      {found.length > 1 && (
        <Picker
          label="Rank"
          value=""
          choices={[
            { key: '', label: `one of ${count(found.length)}` },
            ...found.map((each) => ({
              key: each.trace,
              label: recordingName(each),
              number: each.rank,
              note: each.rank === null ? `span ${each.span}` : each.name,
            })),
          ]}
          onChoose={(trace) => {
            const recording = recordings.get(trace);
            if (recording) go(ofRank(recording, outcome.rule));
          }}
        />
      )}
    </div>
  );
}

interface Props extends PlacesProps {
  readonly run: string;
  readonly step: Pick<StepReport, 'count'>;
  readonly terms: JobTerms;
  readonly isOpen: boolean;
  readonly isDismissed: boolean;
  readonly onToggle: (isOpen: boolean) => void;
}

/** One finding of a job: in which ranks and steps, what it costs the whole; open, why, proof and fix of the worst. */
export function JobFinding({
  merged,
  recordings,
  run,
  step,
  terms,
  isOpen,
  isDismissed,
  onToggle,
}: Props): ReactNode {
  const { outcome, where, when } = merged;
  const own = recordings.get(outcome.trace);
  const severity = outcome.severity ?? 'info';
  const body = (
    <FindingBody outcome={outcome} run={run} step={step} also={[]} isDismissed={isDismissed}>
      <Places merged={merged} recordings={recordings} />
      <Related related={merged.related} moreCount={merged.related_more} recordings={recordings} />
    </FindingBody>
  );
  return (
    <FindingFrame
      outcome={outcome}
      look={severity}
      badge={<SeverityBadge severity={severity} />}
      meta={
        <>
          <span className="job-where">{where === '' ? 'the run as a whole' : where}</span>
          {when !== '' && <span>{when}</span>}
          {outcome.confidence && <span>{outcome.confidence} confidence</span>}
        </>
      }
      saving={<Saving merged={merged} terms={terms} />}
      isOpen={isOpen}
      onToggle={onToggle}
    >
      {own ? <Within place={{ worker: own.name, span: own.span }}>{body}</Within> : body}
    </FindingFrame>
  );
}
