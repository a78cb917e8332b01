/** The outcomes of a run, sorted into what the page says of one recording. Pure. */
import type { HealthItem, Outcome, RunReport, WorkerReport } from '../../api/types.gen';

export interface Recording {
  readonly worker: string;
  readonly span: string;
}

export interface Sorted {
  readonly found: readonly Outcome[];
  readonly passed: readonly Outcome[];
  readonly notApplicable: readonly Outcome[];
  readonly failed: readonly Outcome[];
  readonly suppressed: readonly Outcome[];
}

const SEVERITY = { critical: 0, warning: 1, info: 2 } as const;

const rankOf = (outcome: Outcome): number => (outcome.severity ? SEVERITY[outcome.severity] : 3);

/** Severity first, then what is left to save; what claims nothing comes after what does. */
function byWorth(a: Outcome, b: Outcome): number {
  return (
    rankOf(a) - rankOf(b) ||
    (b.claim?.net_high_ns ?? -1) - (a.claim?.net_high_ns ?? -1) ||
    a.title.localeCompare(b.title)
  );
}

const isOf = (outcome: Outcome, { worker, span }: Recording): boolean =>
  outcome.worker === worker && outcome.span === span;

/** What every rule said of one recording. */
export function sorted(outcomes: readonly Outcome[], recording: Recording): Sorted {
  const own = outcomes.filter((outcome) => isOf(outcome, recording));
  const of = (status: Outcome['status']): Outcome[] =>
    own.filter((outcome) => outcome.status === status);
  return {
    found: of('found').sort(byWorth),
    passed: of('passed'),
    notApplicable: of('not-applicable'),
    failed: of('failed'),
    suppressed: of('suppressed'),
  };
}

/** The other recordings of the run in which a rule found the same. */
export function alsoFound(
  outcomes: readonly Outcome[],
  rule: string,
  recording: Recording,
): readonly Outcome[] {
  return outcomes.filter(
    (outcome) => outcome.rule === rule && outcome.status === 'found' && !isOf(outcome, recording),
  );
}

/** Findings of rules that found nothing in this recording, the worst of each rule. */
export function foundElsewhere(
  outcomes: readonly Outcome[],
  recording: Recording,
): readonly Outcome[] {
  const here = new Set(sorted(outcomes, recording).found.map((outcome) => outcome.rule));
  const worst = new Map<string, Outcome>();
  for (const outcome of outcomes) {
    if (outcome.status !== 'found' || here.has(outcome.rule)) continue;
    const before = worst.get(outcome.rule);
    if (!before || byWorth(outcome, before) < 0) worst.set(outcome.rule, outcome);
  }
  return [...worst.values()].sort(byWorth);
}

export type Emptiness = 'healthy' | 'cannot-tell' | 'nothing-applicable';

/** What it means that nothing was found: an honest word needs checks that could be made. */
export function emptiness(outcomes: Sorted, health: readonly HealthItem[]): Emptiness {
  const { passed, notApplicable, failed } = outcomes;
  if (passed.length === 0 && failed.length === 0) return 'nothing-applicable';
  const isDamaged = health.some((item) => item.severity === 'critical');
  const isBlind = passed.length < notApplicable.length + failed.length;
  return isDamaged || failed.length > 0 || isBlind ? 'cannot-tell' : 'healthy';
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

export function reportOf(report: RunReport, recording: Recording): WorkerReport | undefined {
  return report.workers.find(
    (worker) => worker.name === recording.worker && worker.span === recording.span,
  );
}
