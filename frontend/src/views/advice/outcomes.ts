/** The outcomes of a run, sorted into what the page says of one recording. Pure. */
import type { MergedOutcome, Outcome, WorkerReport } from '../../api/types.gen';

export interface Sorted {
  /** What to fix, in the order in which the server ranks it. */
  readonly found: readonly Outcome[];
  /** Findings all of whose time another finding already counts. */
  readonly covered: readonly Outcome[];
  /** What looks like a fault and costs nothing here. */
  readonly rejected: readonly Outcome[];
  readonly passed: readonly Outcome[];
  /** What they need was not recorded, or is damaged. */
  readonly cannotTell: readonly Outcome[];
  /** The recording has nothing of what they are about. */
  readonly notApplicable: readonly Outcome[];
  readonly failed: readonly Outcome[];
  readonly suppressed: readonly Outcome[];
}

/** True where other findings count all the time that this one claims: the same problem, seen twice. */
export const isCovered = ({ claim }: Outcome): boolean =>
  claim !== null && claim.gross_ns > 0 && claim.net_high_ns === 0;

/** What every rule said of one recording, in the server's order. */
export function sorted(outcomes: readonly Outcome[], trace: string): Sorted {
  const own = outcomes.filter((outcome) => outcome.trace === trace);
  const of = (status: Outcome['status']): Outcome[] =>
    own.filter((outcome) => outcome.status === status);
  const found = of('found');
  return {
    found: found.filter((outcome) => !isCovered(outcome)),
    covered: found.filter(isCovered),
    rejected: of('rejected'),
    passed: of('passed'),
    cannotTell: of('cannot-tell'),
    notApplicable: of('not-applicable'),
    failed: of('failed'),
    suppressed: of('suppressed'),
  };
}

/** What rules over the whole run found: of ranks and of what they wait for. */
export const ofTheRun = (outcomes: readonly Outcome[]): readonly Outcome[] =>
  outcomes.filter((outcome) => outcome.trace === '' && outcome.status === 'found');

/** The other recordings of the run in which a rule found the same. */
export function alsoFound(merged: readonly MergedOutcome[], rule: string, trace: string): string[] {
  const same = merged.filter(
    ({ outcome, traces }) => outcome.rule === rule && traces.includes(trace),
  );
  return [...new Set(same.flatMap(({ traces }) => traces))].filter((each) => each !== trace);
}

/** Findings of rules that found nothing in this recording, of each rule the first: the worst. */
export function foundElsewhere(merged: readonly MergedOutcome[], trace: string): Outcome[] {
  const ofSome = merged.filter(({ traces }) => traces.length > 0);
  const seen = new Set(
    ofSome.filter(({ traces }) => traces.includes(trace)).map(({ outcome }) => outcome.rule),
  );
  return ofSome
    .map(({ outcome }) => outcome)
    .filter(({ rule }) => !seen.has(rule) && seen.add(rule));
}

/** `… 22.9 ms of it is counted under item-sync, launch-bound.`: how a claim's method ends. */
const TAKERS = /\bis counted under ([a-z0-9-]+(?:, [a-z0-9-]+)*)\.$/;

/** The findings that count a covered one's time. */
export function takersOf(outcome: Outcome, found: readonly Outcome[]): readonly Outcome[] {
  const rules = TAKERS.exec(outcome.claim?.method ?? '')?.[1]?.split(', ') ?? [];
  return found.filter((each) => rules.includes(each.rule));
}

export type Emptiness = 'healthy' | 'cpu-alone' | 'cannot-tell' | 'nothing-applicable';

type Recorded = Pick<WorkerReport, 'devices' | 'health'>;

/** What it means that nothing was found: an honest word needs checks that could be made. */
export function emptiness(outcomes: Sorted, { devices, health }: Recorded): Emptiness {
  const { passed, rejected, cannotTell, failed } = outcomes;
  const looked = passed.length + rejected.length;
  if (looked + cannotTell.length + failed.length === 0) return 'nothing-applicable';
  const isDoubtful = passed.some((outcome) => outcome.doubts.length > 0);
  if (isDoubtful || failed.length > 0 || health.some((item) => item.severity === 'critical')) {
    return 'cannot-tell';
  }
  if (devices.length === 0) return 'cpu-alone';
  return looked >= cannotTell.length ? 'healthy' : 'cannot-tell';
}

export interface Lack {
  readonly reason: string;
  readonly remedy: string;
  readonly outcomes: readonly Outcome[];
}

/** Checks that lack the same thing, together: what most of them lack comes first. */
export function byLack(outcomes: readonly Outcome[]): readonly Lack[] {
  const lacks = new Map<string, Outcome[]>();
  for (const outcome of outcomes) {
    const key = JSON.stringify([outcome.reason ?? '', outcome.remedy ?? '']);
    lacks.set(key, [...(lacks.get(key) ?? []), outcome]);
  }
  return [...lacks]
    .map(([key, own]) => {
      const [reason, remedy] = JSON.parse(key) as [string, string];
      return { reason, remedy, outcomes: own };
    })
    .sort((a, b) => b.outcomes.length - a.outcomes.length);
}
