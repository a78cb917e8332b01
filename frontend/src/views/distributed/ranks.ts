/** Names of ranks, steps and collectives; missing ranks; colours of the parts of a step. Pure. */
import type { Distributed } from '../../api/types.gen';
import { colourOf } from '../../core/colour';
import type { Selection } from '../../state/selection';

interface Named {
  readonly rank: number | null;
  readonly worker: string;
}

/** `rank 3`, or the worker's name if the rank is unknown. */
export const rankName = ({ rank, worker }: Named): string =>
  rank === null ? worker : `rank ${rank}`;

export const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

export interface RankRange {
  readonly first: number;
  readonly last: number;
}

/** `3, 8-15` as ranges. */
export function rangesOf(text: string): RankRange[] {
  return [...text.matchAll(/(\d+)(?:-(\d+))?/g)].map((match) => ({
    first: Number(match[1]),
    last: Number(match[2] ?? match[1]),
  }));
}

/** Steps as ranges: `2–5, 9`. */
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

/** The usual spelling of a kind of collective. */
export const kindName = (kind: string): string => KINDS[kind] ?? capital(kind.replaceAll('_', ' '));

export interface Missing {
  readonly count: number;
  /** `2-7, 9`. */
  readonly ranks: string;
}

/** The ranks of the job without a trace; none while files are still to be read or their reading was cancelled. */
export function missingOf(
  { run, span }: Pick<Selection, 'run' | 'span'>,
  { waiting_count, missing_count, missing_ranks }: Distributed,
): Missing {
  const isCancelled = run.workers.some(({ spans }) =>
    spans.some(({ label, state }) => label === span.label && state === 'cancelled'),
  );
  if (waiting_count > 0 || isCancelled) return { count: 0, ranks: '' };
  return { count: missing_count, ranks: missing_ranks };
}

const compute = colourOf('kernel');
const send = colourOf('communication');

const stripes = (first: string, second: string): string =>
  `repeating-linear-gradient(135deg, ${first} 0 4px, ${second} 4px 8px)`;

const FILLS: Readonly<Record<string, string>> = {
  computing: compute,
  overlapped: stripes(compute, send),
  transfer: send,
  waiting: stripes(send, `color-mix(in srgb, ${send} 35%, var(--surface))`),
  copies: colourOf('memcpy'),
  loading: colourOf('dataloader'),
  other: colourOf('other'),
};

/** The background of a part of a step: the category's colour, striped for overlap and waiting. */
export const fillOfPart = (id: string): string => FILLS[id] ?? colourOf(id);
