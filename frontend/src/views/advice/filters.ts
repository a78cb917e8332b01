/** Which findings are shown: of a part of the step, of a topic; and which the user put aside. Pure. */
import type { Outcome, WorkerReport } from '../../api/types.gen';
import { keyOf } from './dismissed';

export interface Filters {
  /** A part of the mean step: findings that could win some of it back. */
  readonly part: string | null;
  /** What a rule is about: `input pipeline`. */
  readonly topic: string | null;
}

/** The rules that could win back some of a part of the step. */
export function rulesOfPart(worker: WorkerReport, part: string): readonly string[] {
  return worker.budget.find((line) => line.category === part)?.rules ?? [];
}

export function isShown(outcome: Outcome, filters: Filters, worker: WorkerReport): boolean {
  if (filters.topic !== null && outcome.category !== filters.topic) return false;
  return filters.part === null || rulesOfPart(worker, filters.part).includes(outcome.rule);
}

export interface Topic {
  readonly name: string;
  readonly count: number;
}

/** What findings are about, the most frequent first. */
export function topicsOf(outcomes: readonly Outcome[]): readonly Topic[] {
  const counts = new Map<string, number>();
  for (const { category } of outcomes) counts.set(category, (counts.get(category) ?? 0) + 1);
  return [...counts]
    .map(([name, count]) => ({ name, count }))
    .sort((a, b) => b.count - a.count || (a.name < b.name ? -1 : 1));
}

/** Findings that are shown, and those that were put aside. */
export function apart(
  outcomes: readonly Outcome[],
  dismissed: readonly string[],
): readonly [Outcome[], Outcome[]] {
  const isAside = (outcome: Outcome): boolean => dismissed.includes(keyOf(outcome));
  return [outcomes.filter((each) => !isAside(each)), outcomes.filter(isAside)];
}
