import type { ReactNode } from 'react';
import { useAdvice } from '../../api/queries';
import type { Distributed, Outcome, RunClocks } from '../../api/types.gen';
import { count, duration, plural } from '../../core/format';
import type { Selection } from '../../state/selection';
import { SeverityBadge } from '../../widgets/badge';
import { Goto } from '../../widgets/goto';
import { Icon } from '../../widgets/icon';
import { Problems } from '../../widgets/problems';
import { Prose } from '../../widgets/prose';
import { KeyFigures } from './key_figures';
import { missingOf } from './missing';
import { capital, rankName } from './names';

const CATEGORY = 'distributed balance';
const SHOWN = 3;
const SEVERITIES = ['critical', 'warning', 'info'];

/** What the advice says of the ranks beside each other, the worst first. */
export function balanceOf(outcomes: readonly Outcome[]): Outcome[] {
  return outcomes
    .filter(({ category, status }) => category === CATEGORY && status === 'found')
    .sort(
      (a, b) => SEVERITIES.indexOf(a.severity ?? 'info') - SEVERITIES.indexOf(b.severity ?? 'info'),
    );
}

interface Props {
  readonly selection: Selection;
  readonly summary: Distributed;
}

/** In place of a finding: who is late all the same, or that nobody is. */
export function lateWords({ stragglers, ranks }: Distributed): string {
  const late = stragglers.filter((each) => each.is_straggler);
  const [first] = late;
  if (!first) {
    return stragglers.length > 0
      ? 'No rank is late to collectives beyond what is usual among them.'
      : 'No collective that makes every rank wait was found on several ranks: who is late cannot be told.';
  }
  const others = Math.max(1, ranks.length - 1);
  const when = first.since_step === null ? '' : ` since step ${first.since_step}`;
  const more =
    late.length > 1
      ? ` ${plural(late.length - 1, 'other rank')} ${late.length === 2 ? 'is' : 'are'} late, too.`
      : '';
  return `${capital(rankName(first))} is late to collectives${when}, ${duration(first.lateness_ns ?? 0)} after the median rank; another rank waits ${duration(first.wait_caused_ns / others)} a step for it, which no rule holds worth a finding.${more}`;
}

/** A rule over the whole run says it once, and so does what several recordings have in common. */
function Findings({ selection, summary }: Props): ReactNode {
  const { data } = useAdvice(selection.run, selection.span.trace);
  const found = balanceOf([
    ...(data?.outcomes ?? []).filter(({ trace }) => trace === ''),
    ...(data?.merged ?? []).map(({ outcome }) => outcome),
  ]);
  const distinct = [...new Map(found.map((each) => [each.message, each])).values()];
  if (data && distinct.length === 0) return <p className="balance-finding">{lateWords(summary)}</p>;
  return distinct.slice(0, SHOWN).map((each) => (
    <p key={each.message} className="balance-finding">
      {each.severity && <SeverityBadge severity={each.severity} />}
      <span>
        <Prose text={each.message} />{' '}
        <Goto to={{ view: 'advice', open: each.rule }}>What to do</Goto>
      </span>
    </p>
  ));
}

export function clockWords(clocks: RunClocks, all: number): string {
  const { machine_count, collective_count, lost_count, error_ns, likely_error_ns, drift_count } =
    clocks;
  if (clocks.reference === '' || machine_count + collective_count < 2) {
    return 'Clocks could not be aligned: the ranks share no collective that none can leave before all have come, or those that they share contradict each other.';
  }
  const how: string[] = [];
  if (machine_count > 1)
    how.push(`${count(machine_count)} share the clock of ${clocks.reference}’s machine`);
  if (collective_count > 0) {
    const whose = machine_count > 1 ? 'it' : `that of ${clocks.reference}`;
    how.push(
      `${count(collective_count)} of ${count(all)} are aligned with ${whose} by collectives that no rank leaves before all have come`,
    );
  }
  const bound =
    error_ns === null || error_ns === 0
      ? ''
      : `; none is off by more than ${duration(error_ns)}${likely_error_ns && likely_error_ns < error_ns ? `, mostly by less than ${duration(likely_error_ns)}` : ''}`;
  const lost = lost_count > 0 ? `; ${count(lost_count)} could not be aligned` : '';
  const drift = drift_count > 0 ? `; the drift of ${count(drift_count)} was taken out` : '';
  return `Clocks: ${how.join(', ')}${bound}${drift}${lost}.`;
}

/** How much of the job is here, what is wrong between its ranks, and how far its clocks can be trusted. */
export function Summary({ selection, summary }: Props): ReactNode {
  const { ranks, world_size, unreadable_ranks } = summary;
  const missing = missingOf(selection, summary);
  const unsure = ranks.filter((each) => each.rank === null).length;
  const guessed = ranks.filter(
    (each) => each.rank !== null && each.rank_confidence !== 'high',
  ).length;
  return (
    <section className="card distributed-summary" aria-label="Verdict">
      <KeyFigures selection={selection} summary={summary} />
      <Findings selection={selection} summary={summary} />
      {missing.count > 0 && (
        <p className="distributed-missing">
          <Icon name="warning" size={15} />
          <span>
            {plural(missing.count, 'rank')} of {count(world_size ?? 0)}{' '}
            {missing.count === 1 ? 'has' : 'have'} no recording here: {missing.ranks}
            {unreadable_ranks !== '' &&
              ` (of ${unreadable_ranks} there is a file, which cannot be read)`}
            . Waiting for them shows as transfer, and nothing tells whether they are late.
          </span>
        </p>
      )}
      <p className="muted">
        {clockWords(summary.clocks, ranks.length)} {count(summary.matched_count)} of{' '}
        {plural(summary.collective_count, 'collective')}{' '}
        {summary.matched_count === 1 ? 'was' : 'were'} found on more than one rank.
        {guessed > 0 &&
          ` ${plural(guessed, 'rank')} known by ${sourceWords(summary)} only, not by the file’s header.`}
        {unsure > 0 && ` Of ${plural(unsure, 'recording')} nothing tells the rank.`}
      </p>
      <Problems problems={summary.problems} />
    </section>
  );
}

function sourceWords({ ranks }: Distributed): string {
  const words: Readonly<Record<string, string>> = {
    'file name': 'file name',
    content: 'process groups',
    device: 'device number',
  };
  const found = new Set(ranks.map((each) => words[each.rank_source ?? '']).filter(Boolean));
  return [...found].join(' or ') || 'little';
}
