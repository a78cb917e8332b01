/** Search for names to scale. Pure. */
import type { ScalableNames, WhatIfNames } from '../../api/types.gen';
import { match, wordsOf } from '../../core/fuzzy';
import { shortName } from '../../core/names';
import type { Target } from './changes';
import { asPattern, exactly, globMatcher, hasWildcards } from './glob';

export interface Suggestion {
  readonly target: Target;
  readonly pattern: string;
  readonly label: string;
  /** The name in full. */
  readonly title: string;
  readonly eventCount: number;
  readonly timeNs: number;
  /** The number of names; null for a single name. */
  readonly nameCount: number | null;
}

const TARGETS: readonly Target[] = ['kernels', 'operators'];
const MOST = 30;

function nameSuggestion(target: Target, names: ScalableNames, at: number): Suggestion {
  const name = names.names[at] ?? '';
  return {
    target,
    pattern: exactly(name),
    label: shortName(name),
    title: name,
    eventCount: names.counts[at] ?? 0,
    timeNs: names.times_ns[at] ?? 0,
    nameCount: null,
  };
}

/** All names that match the typed text; nothing if that is one name, which is listed itself. */
function patternSuggestion(target: Target, names: ScalableNames, typed: string): Suggestion[] {
  const pattern = asPattern(typed);
  const matches = globMatcher(pattern);
  let [nameCount, eventCount, timeNs] = [0, 0, 0];
  for (const [at, name] of names.names.entries()) {
    if (!matches(name)) continue;
    nameCount += 1;
    eventCount += names.counts[at] ?? 0;
    timeNs += names.times_ns[at] ?? 0;
  }
  if (nameCount < (hasWildcards(typed) ? 1 : 2)) return [];
  return [{ target, pattern, label: pattern, title: pattern, eventCount, timeNs, nameCount }];
}

/** Suggestions for a typed text: patterns first, then names by match, longest total time first. */
export function suggestionsFor(names: WhatIfNames, typed: string): readonly Suggestion[] {
  const words = wordsOf(typed);
  const text = typed.trim();
  const patterns =
    text === '' ? [] : TARGETS.flatMap((target) => patternSuggestion(target, names[target], text));
  const scored = TARGETS.flatMap((target) =>
    names[target].names.flatMap((name, at) => {
      const result = match(shortName(name), words, name.toLowerCase());
      if (!result) return [];
      return [{ suggestion: nameSuggestion(target, names[target], at), score: result.score }];
    }),
  );
  const byScore = scored.toSorted((a, b) =>
    text === ''
      ? b.suggestion.timeNs - a.suggestion.timeNs
      : b.score - a.score || b.suggestion.timeNs - a.suggestion.timeNs,
  );
  return [...patterns, ...byScore.slice(0, MOST).map(({ suggestion }) => suggestion)];
}
