/** The outcomes of a run, grouped for the advice on one trace. Pure. */
import type { MergedOutcome, Outcome, WorkerReport } from '../../api/types.gen';
import { decisiveSaving, isCovered } from '../../core/claims';
import { keyOf } from './dismissed';

export interface GroupedOutcomes {
  /** In the order of the server. */
  readonly findings: readonly Outcome[];
  /** Related symptoms: findings without a saving beyond that of other findings. */
  readonly related: readonly Outcome[];
  /** Suspected faults that cost nothing here. */
  readonly ruledOut: readonly Outcome[];
  readonly passed: readonly Outcome[];
  /** Checks whose data was not recorded, or is damaged. */
  readonly inconclusive: readonly Outcome[];
  readonly notApplicable: readonly Outcome[];
  readonly failed: readonly Outcome[];
  readonly suppressed: readonly Outcome[];
}

const SEVERITIES: readonly Outcome['severity'][] = [null, 'info', 'warning', 'critical'];
const rank = ({ severity }: Outcome): number => SEVERITIES.indexOf(severity);

const savesNothing = ({ claim }: Outcome): boolean =>
  claim === null || decisiveSaving(claim).highNs === 0;

/**
 * Whether other findings count all the time that a finding claims, or a finding as serious names
 * the cause of what it shows.
 */
function isRelated(outcome: Outcome, all: readonly Outcome[]): boolean {
  if (outcome.claim !== null && isCovered(outcome.claim)) return true;
  if (!outcome.is_symptom || !savesNothing(outcome)) return false;
  return all.some((other) => !other.is_symptom && rank(other) >= rank(outcome));
}

/** The outcomes of one trace, in the order of the server. */
export function groupedOutcomes(outcomes: readonly Outcome[], trace: string): GroupedOutcomes {
  const ownOutcomes = outcomes.filter((outcome) => outcome.trace === trace);
  const of = (status: Outcome['status']): Outcome[] =>
    ownOutcomes.filter((outcome) => outcome.status === status);
  const findings = of('found');
  return {
    findings: findings.filter((outcome) => !isRelated(outcome, findings)),
    related: findings.filter((outcome) => isRelated(outcome, findings)),
    ruledOut: of('rejected'),
    passed: of('passed'),
    inconclusive: of('cannot-tell'),
    notApplicable: of('not-applicable'),
    failed: of('failed'),
    suppressed: of('suppressed'),
  };
}

/** Findings of rules over the whole run. */
export const runFindings = (outcomes: readonly Outcome[]): readonly Outcome[] =>
  outcomes.filter((outcome) => outcome.trace === '' && outcome.status === 'found');

/** The other traces of the run with the same finding. */
export function otherTracesWith(
  merged: readonly MergedOutcome[],
  rule: string,
  trace: string,
): string[] {
  const same = merged.filter(
    ({ outcome, traces }) => outcome.rule === rule && traces.includes(trace),
  );
  return [...new Set(same.flatMap(({ traces }) => traces))].filter((other) => other !== trace);
}

/** Findings of rules without a finding in this trace, the worst of each rule. */
export function onlyElsewhere(merged: readonly MergedOutcome[], trace: string): Outcome[] {
  const ofSome = merged.filter(({ traces }) => traces.length > 0);
  const seen = new Set(
    ofSome.filter(({ traces }) => traces.includes(trace)).map(({ outcome }) => outcome.rule),
  );
  return ofSome
    .map(({ outcome }) => outcome)
    .filter(({ rule }) => !seen.has(rule) && seen.add(rule));
}

/** The findings that count the time of a related symptom. */
export function countedUnder(outcome: Outcome, findings: readonly Outcome[]): readonly Outcome[] {
  const rules = outcome.claim?.counted_under;
  return findings.filter((other) => rules?.includes(other.rule));
}

export type EmptyReason = 'healthy' | 'cpu-only' | 'inconclusive' | 'nothing-applicable';

/** The page of an advice without findings, by the overall status of the trace. */
export function emptyReason({
  devices,
  standing,
}: Pick<WorkerReport, 'devices' | 'standing'>): EmptyReason {
  if (standing?.state === 'healthy') return 'healthy';
  if (standing?.state === 'not-applicable') return 'nothing-applicable';
  return devices.length === 0 ? 'cpu-only' : 'inconclusive';
}

export interface MissingData {
  readonly reason: string;
  readonly remedy: string;
  readonly outcomes: readonly Outcome[];
}

/** Checks grouped by reason, the most frequent first. */
export function byMissingData(outcomes: readonly Outcome[]): readonly MissingData[] {
  const groups = new Map<string, Outcome[]>();
  for (const outcome of outcomes) {
    const key = JSON.stringify([outcome.reason ?? '', outcome.remedy ?? '']);
    groups.set(key, [...(groups.get(key) ?? []), outcome]);
  }
  return [...groups]
    .map(([key, ownOutcomes]) => {
      const [reason, remedy] = JSON.parse(key) as [string, string];
      return { reason, remedy, outcomes: ownOutcomes };
    })
    .sort((a, b) => b.outcomes.length - a.outcomes.length);
}

export interface Filters {
  /** A part of the mean step: findings that save some of it. */
  readonly part: string | null;
  /** A category of rules: `input pipeline`. */
  readonly topic: string | null;
}

/** Rules with savings in a part of the step. */
function rulesOfPart(worker: WorkerReport, part: string): readonly string[] {
  return worker.budget.find((line) => line.category === part)?.rules ?? [];
}

export function isShown(outcome: Outcome, filters: Filters, worker: WorkerReport): boolean {
  if (filters.topic !== null && outcome.category !== filters.topic) return false;
  return filters.part === null || rulesOfPart(worker, filters.part).includes(outcome.rule);
}

/** Topics of findings, the most frequent first. */
export function topicsOf(outcomes: readonly Outcome[]): { name: string; count: number }[] {
  const counts = new Map<string, number>();
  for (const { category } of outcomes) counts.set(category, (counts.get(category) ?? 0) + 1);
  return [...counts]
    .map(([name, count]) => ({ name, count }))
    .sort((a, b) => b.count - a.count || (a.name < b.name ? -1 : 1));
}

/** The findings without the dismissed ones, and the dismissed ones. */
export function splitDismissed(
  outcomes: readonly Outcome[],
  dismissed: readonly string[],
): readonly [Outcome[], Outcome[]] {
  const isDismissed = (outcome: Outcome): boolean => dismissed.includes(keyOf(outcome));
  return [outcomes.filter((outcome) => !isDismissed(outcome)), outcomes.filter(isDismissed)];
}
