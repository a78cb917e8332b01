/** Answers on a whole run: asked anew as its files come in, at a pace that leaves the server time for other things. */
import {
  keepPreviousData,
  type QueryKey,
  type UseQueryResult,
  useQuery,
} from '@tanstack/react-query';
import { useRef } from 'react';
import { isPending } from '../core/progress';
import type { Span } from './types.gen';

/** What an answer rests on. */
export interface Basis {
  /** Changes with the files that can be shown. */
  readonly revision: string;
  /** Whether more of them are on their way. */
  readonly isGrowing: boolean;
}

export function basisOf(spans: readonly Span[]): Basis {
  const tally = { ready: 0, ended: 0, bytes: 0, events: 0, isGrowing: false };
  for (const span of spans) {
    if (isPending(span)) tally.isGrowing = true;
    else if (span.state === 'ready') {
      tally.ready += 1;
      tally.bytes += span.file_bytes;
      tally.events += span.events ?? 0;
    } else tally.ended += 1;
  }
  const { ready, ended, bytes, events, isGrowing } = tally;
  return { revision: `${ready} ${ended} ${bytes} ${events}`, isGrowing };
}

interface Followed<T> {
  readonly value: T;
  /** What it rests on, as it was known when it was asked for. */
  readonly revision: string;
  readonly tookMs: number;
}

const LEAST_MS = 1000;
const SOON_MS = 50;
/** While files come in the server rests between answers: one may lack what came in as long before (`run_advice.py`). */
const BEHIND_MS = 12_000;
/** An answer that takes long is asked for so much less often. */
const REST = 5;

interface Last {
  readonly revision: string;
  readonly tookMs: number;
  readonly endedAtMs: number;
  readonly hasFailed: boolean;
}

/** In how many milliseconds to ask anew; false: what is there is true of all files. */
export function waitMs(last: Last, { revision, isGrowing }: Basis, nowMs: number): number | false {
  const isKnown = last.revision === revision;
  if (isKnown && !isGrowing) return false;
  const rests = isGrowing || last.hasFailed;
  const leastMs = isKnown ? BEHIND_MS : LEAST_MS;
  const pauseMs = rests ? Math.max(leastMs, REST * last.tookMs) : 0;
  return Math.max(SOON_MS, last.endedAtMs + pauseMs - nowMs);
}

interface Asked<T> {
  readonly queryKey: QueryKey;
  readonly ask: (signal: AbortSignal) => Promise<T>;
  readonly basis: Basis;
  /** Whether an answer to another question may stand there until this one is answered. */
  readonly isAlike: (other: QueryKey) => boolean;
  readonly enabled?: boolean;
}

/** An answer that rests on files which come in one by one: what is there stays until it is replaced. */
export function useFollowed<T>({
  queryKey,
  ask,
  basis,
  isAlike,
  enabled = true,
}: Asked<T>): UseQueryResult<T> {
  // On what the last request that failed would have rested: with other files it may succeed.
  const failed = useRef<Pick<Last, 'revision' | 'tookMs'> | null>(null);
  return useQuery({
    enabled,
    queryKey,
    queryFn: async ({ signal }): Promise<Followed<T>> => {
      const began = performance.now();
      try {
        const value = await ask(signal);
        return { value, revision: basis.revision, tookMs: performance.now() - began };
      } catch (problem) {
        failed.current = { revision: basis.revision, tookMs: performance.now() - began };
        throw problem;
      }
    },
    select: ({ value }) => value,
    placeholderData: (previous, query) =>
      query && isAlike(query.queryKey) ? keepPreviousData(previous) : undefined,
    refetchInterval: ({ state: { data, dataUpdatedAt, errorUpdatedAt, error } }) => {
      const last = error === null ? data : (failed.current ?? data);
      if (!last) return false;
      const endedAtMs = Math.max(dataUpdatedAt, errorUpdatedAt);
      // What there is rests on fewer files than are there: a request that failed is made again.
      const revision = data?.revision ?? last.revision;
      const { tookMs } = last;
      const ended = { revision, tookMs, endedAtMs, hasFailed: error !== null };
      return waitMs(ended, basis, Date.now());
    },
  });
}
