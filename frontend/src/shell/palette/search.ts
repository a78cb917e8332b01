/** Search results by kind, the best kind first. Pure. */
import { match, wordsOf } from '../../core/fuzzy';
import type { Entry } from './entries';

export interface Hit {
  readonly entry: Entry;
  /** Positions of the matched letters in the label. */
  readonly positions: readonly number[];
}

export interface HitGroup {
  readonly kind: string;
  readonly hits: readonly Hit[];
  readonly moreCount: number;
}

interface Scored extends Hit {
  readonly score: number;
}

const MOST_OF_A_KIND = 7;
const MOST_OF_ONE_KIND = 40;
/** Frequent targets come before thousands of names that match equally well. */
const WEIGHT: Readonly<Record<string, number>> = {
  Views: 14,
  Actions: 10,
  Findings: 9,
  Runs: 8,
  'Ranks and workers': 7,
  Steps: 6,
  Spans: 4,
  Operators: 3,
  Kernels: 3,
};

function scored(entries: readonly Entry[], words: readonly string[]): Scored[] {
  const hits: Scored[] = [];
  for (const entry of entries) {
    const result = match(entry.label, words, entry.about);
    if (result)
      hits.push({
        entry,
        positions: result.positions,
        score: result.score + (WEIGHT[entry.kind] ?? 0),
      });
  }
  return hits;
}

/** Items grouped by kind, in the order of first appearance. */
function byKind<T>(things: readonly T[], kindOf: (thing: T) => string): readonly [string, T[]][] {
  const kinds = new Map<string, T[]>();
  for (const thing of things) {
    const group = kinds.get(kindOf(thing));
    if (group) group.push(thing);
    else kinds.set(kindOf(thing), [thing]);
  }
  return [...kinds];
}

/** A stable order: the entries are ordered by importance. */
const byScore = (a: Scored, b: Scored): number => b.score - a.score;

export function hitsFor(entries: readonly Entry[], typed: string): readonly HitGroup[] {
  const kinds = byKind(scored(entries, wordsOf(typed)), ({ entry }) => entry.kind);
  const most = kinds.length === 1 ? MOST_OF_ONE_KIND : MOST_OF_A_KIND;
  return kinds
    .map(([kind, hits]) => ({ kind, hits: hits.toSorted(byScore) }))
    .toSorted((a, b) => byScore(a.hits[0] as Scored, b.hits[0] as Scored))
    .map(({ kind, hits }) => ({
      kind,
      hits: hits.slice(0, most),
      moreCount: Math.max(0, hits.length - most),
    }));
}

const AT_FIRST = new Set(['Views', 'Actions', 'Findings']);
const MOST_RECENT = 5;

function plainGroup(kind: string, entries: readonly Entry[]): HitGroup[] {
  if (entries.length === 0) return [];
  return [{ kind, hits: entries.map((entry) => ({ entry, positions: [] })), moreCount: 0 }];
}

/** Results for an empty query: recent entries, then the general ones. */
export function firstGroups(
  entries: readonly Entry[],
  recent: readonly string[],
): readonly HitGroup[] {
  const byKey = new Map(entries.map((entry) => [entry.key, entry]));
  const lately = recent.flatMap((key) => byKey.get(key) ?? []).slice(0, MOST_RECENT);
  const used = new Set(lately.map(({ key }) => key));
  const others = entries.filter(({ kind, key }) => AT_FIRST.has(kind) && !used.has(key));
  return [
    ...plainGroup('Recent', lately),
    ...byKind(others, ({ kind }) => kind).flatMap(([kind, group]) => plainGroup(kind, group)),
  ];
}
