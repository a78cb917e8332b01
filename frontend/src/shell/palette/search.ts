/** Which entries answer to what was typed, by kind, the best kind first. Pure. */
import { match, wordsOf } from '../../core/fuzzy';
import type { Entry } from './entries';

export interface Hit {
  readonly entry: Entry;
  /** Places of the letters that were found in its label. */
  readonly places: readonly number[];
}

export interface HitGroup {
  readonly kind: string;
  readonly hits: readonly Hit[];
  /** How many more there are. */
  readonly moreCount: number;
}

interface Scored extends Hit {
  readonly score: number;
}

const MOST_OF_A_KIND = 7;
const MOST_OF_ONE_KIND = 40;
/** What is done or gone to often comes before one of thousands of names that match alike. */
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
    const found = match(entry.label, words, entry.about);
    if (found)
      hits.push({
        entry,
        places: found.places,
        score: found.score + (WEIGHT[entry.kind] ?? 0),
      });
  }
  return hits;
}

/** Things by their kind, in the order in which kinds first come. */
function byKind<T>(things: readonly T[], kindOf: (thing: T) => string): readonly [string, T[]][] {
  const kinds = new Map<string, T[]>();
  for (const thing of things) {
    const own = kinds.get(kindOf(thing));
    if (own) own.push(thing);
    else kinds.set(kindOf(thing), [thing]);
  }
  return [...kinds];
}

/** Of equals the first: entries come in an order that says what matters, as time does for names. */
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
  return [{ kind, hits: entries.map((entry) => ({ entry, places: [] })), moreCount: 0 }];
}

/** Before anything is typed: what was used lately, then what there is for all. */
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
    ...byKind(others, ({ kind }) => kind).flatMap(([kind, own]) => plainGroup(kind, own)),
  ];
}
