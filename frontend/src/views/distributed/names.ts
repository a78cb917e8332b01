/** What ranks, steps and collectives are called. Pure. */

interface Named {
  readonly rank: number | null;
  readonly worker: string;
}

/** `rank 3`, or where nothing tells it the worker's name. */
export const rankName = ({ rank, worker }: Named): string =>
  rank === null ? worker : `rank ${rank}`;

export const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

export interface RankRange {
  readonly first: number;
  readonly last: number;
}

/** `3, 8-15` as ranges. */
export function rangesOf(text: string): RankRange[] {
  return [...text.matchAll(/(\d+)(?:-(\d+))?/g)].map((found) => ({
    first: Number(found[1]),
    last: Number(found[2] ?? found[1]),
  }));
}

/** Steps in a row as ranges: `2–5, 9`. */
export function stepRanges(steps: readonly number[]): string {
  const runs: [number, number][] = [];
  for (const step of steps) {
    const last = runs.at(-1);
    if (last && step === last[1] + 1) last[1] = step;
    else runs.push([step, step]);
  }
  return runs.map(([from, to]) => (from === to ? String(from) : `${from}–${to}`)).join(', ');
}

const KINDS: Readonly<Record<string, string>> = {
  all_reduce: 'All-reduce',
  all_gather: 'All-gather',
  reduce_scatter: 'Reduce-scatter',
  all_to_all: 'All-to-all',
  all_to_allv: 'All-to-all (uneven)',
};

/** `all_reduce` as people write it. */
export const kindName = (kind: string): string => KINDS[kind] ?? capital(kind.replaceAll('_', ' '));
