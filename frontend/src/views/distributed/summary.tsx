import type { ReactNode } from 'react';
import { useAdvice } from '../../api/queries';
import type { Distributed, Outcome, RunClocks } from '../../api/types.gen';
import { count, duration, plural } from '../../core/format';
import { SeverityBadge } from '../../widgets/badge';
import { Goto } from '../../widgets/goto';
import { Icon } from '../../widgets/icon';
import { Problems } from '../../widgets/problems';
import { Prose } from '../../widgets/prose';
import { KeyFigures } from './key_figures';
import type { JobProps } from './queries';
import { capital, missingOf, rankName } from './ranks';

const CATEGORY = 'distributed balance';
const SHOWN = 3;
const SEVERITIES = ['critical', 'warning', 'info'];

/** Findings of the advice that compare the ranks, the most severe first. */
export function balanceOf(outcomes: readonly Outcome[]): Outcome[] {
  return outcomes
    .filter(({ category, status }) => category === CATEGORY && status === 'found')
    .sort(
      (a, b) => SEVERITIES.indexOf(a.severity ?? 'info') - SEVERITIES.indexOf(b.severity ?? 'info'),
    );
}

/** The text without a finding: the latest rank, or that none is late. */
export function lateNote({ stragglers, ranks }: Distributed): string {
  const late = stragglers.filter((rank) => rank.is_straggler);
  const [first] = late;
  if (!first) {
    return stragglers.length > 0
      ? 'No rank is late to collectives to a significant degree.'
      : 'Lateness is inconclusive: the ranks share no collective that makes every rank wait.';
  }
  const others = Math.max(1, ranks.length - 1);
  const when = first.since_step === null ? '' : ` since step ${first.since_step}`;
  const more =
    late.length > 1
      ? ` ${plural(late.length - 1, 'other rank')} ${late.length === 2 ? 'is' : 'are'} late as well.`
      : '';
  return `${capital(rankName(first))} is late to collectives${when}, ${duration(first.lateness_ns ?? 0)} after the median rank; each other rank waits ${duration(first.wait_caused_ns / others)} per step for it, too little for a finding.${more}`;
}

/** Findings of rules over the run, and findings merged over several traces. */
function Findings({ selection, summary }: JobProps): ReactNode {
  const { data } = useAdvice(selection.run, selection.span.trace);
  const findings = balanceOf([
    ...(data?.outcomes ?? []).filter(({ trace }) => trace === ''),
    ...(data?.merged ?? []).map(({ outcome }) => outcome),
  ]);
  const distinct = [...new Map(findings.map((rank) => [rank.message, rank])).values()];
  if (data && distinct.length === 0) return <p className="balance-finding">{lateNote(summary)}</p>;
  return distinct.slice(0, SHOWN).map((rank) => (
    <p key={rank.message} className="balance-finding">
      {rank.severity && <SeverityBadge severity={rank.severity} />}
      <span>
        <Prose text={rank.message} />{' '}
        <Goto to={{ view: 'advice', open: rank.rule }}>What to do</Goto>
      </span>
    </p>
  ));
}

export function clockNote(clocks: RunClocks, all: number): string {
  const { machine_count, collective_count, lost_count, error_ns, likely_error_ns, drift_count } =
    clocks;
  if (clocks.reference === '' || machine_count + collective_count < 2) {
    return 'Clocks could not be aligned: the ranks share no collective that synchronizes all of them, or their collectives contradict each other.';
  }
  const groups: string[] = [];
  if (machine_count > 1)
    groups.push(`${count(machine_count)} share the clock of ${clocks.reference}’s machine`);
  if (collective_count > 0) {
    const reference = machine_count > 1 ? 'it' : `that of ${clocks.reference}`;
    groups.push(
      `${count(collective_count)} of ${count(all)} are aligned with ${reference} by collectives that synchronize all ranks`,
    );
  }
  const bound =
    error_ns === null || error_ns === 0
      ? ''
      : `; the error is at most ${duration(error_ns)}${likely_error_ns && likely_error_ns < error_ns ? `, usually below ${duration(likely_error_ns)}` : ''}`;
  const lost = lost_count > 0 ? `; ${count(lost_count)} could not be aligned` : '';
  const drift = drift_count > 0 ? `; the drift of ${count(drift_count)} is corrected` : '';
  return `Clocks: ${groups.join(', ')}${bound}${drift}${lost}.`;
}

/** Key figures, findings between ranks, missing ranks, and the alignment of clocks. */
export function Summary({ selection, summary }: JobProps): ReactNode {
  const { ranks, world_size, unreadable_ranks } = summary;
  const missing = missingOf(selection, summary);
  const unsure = ranks.filter((rank) => rank.rank === null).length;
  const guessed = ranks.filter(
    (rank) => rank.rank !== null && rank.rank_confidence !== 'high',
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
            {missing.count === 1 ? 'has' : 'have'} no trace here: {missing.ranks}
            {unreadable_ranks !== '' && ` (the files of ${unreadable_ranks} cannot be read)`}.
            Waiting for them shows as transfer, and their lateness is unknown.
          </span>
        </p>
      )}
      <p className="muted">
        {clockNote(summary.clocks, ranks.length)} {count(summary.matched_count)} of{' '}
        {plural(summary.collective_count, 'collective')}{' '}
        {summary.matched_count === 1 ? 'was' : 'were'} matched across ranks.
        {guessed > 0 &&
          ` ${plural(guessed, 'rank')} identified by ${sourceNames(summary)} only, not by the file’s header.`}
        {unsure > 0 && ` The rank of ${plural(unsure, 'trace')} is unknown.`}
      </p>
      <Problems problems={summary.problems} />
    </section>
  );
}

function sourceNames({ ranks }: Distributed): string {
  const names: Readonly<Record<string, string>> = {
    'file name': 'file name',
    content: 'process groups',
    device: 'device number',
  };
  const findings = new Set(ranks.map((rank) => names[rank.rank_source ?? '']).filter(Boolean));
  return [...findings].join(' or ') || 'little';
}
