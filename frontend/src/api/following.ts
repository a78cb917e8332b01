/** Responses about a whole run: requested again as its files are read, at a pace that spares the server. */
import {
  keepPreviousData,
  type QueryKey,
  type UseQueryResult,
  useQuery,
} from '@tanstack/react-query';
import { useRef } from 'react';
import { isPending } from '../core/progress';
import type { Span } from './types.gen';

/** The state of the files that a response is computed from. */
export interface Basis {
  /** Changes when a file becomes available or is rewritten. */
  readonly revision: string;
  /** Whether files are still being read. */
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

const LEAST_MS = 1000;
const SOON_MS = 50;
/** While files are read, the server may respond with a result that is this old (`run_advice.py`). */
const SERVER_DELAY_MS = 12_000;
/** The pause after a request, as a multiple of its duration. */
const PAUSE_FACTOR = 5;

interface Attempt {
  /** The basis at the time of the request. */
  readonly revision: string;
  readonly tookMs: number;
}

interface Last extends Attempt {
  readonly endedAtMs: number;
  readonly hasFailed: boolean;
}

/** Milliseconds until the next request; false where the response covers all files. */
export function waitMs(last: Last, { revision, isGrowing }: Basis, nowMs: number): number | false {
  const isCurrent = last.revision === revision;
  if (isCurrent && !isGrowing) return false;
  const leastMs = isCurrent ? SERVER_DELAY_MS : LEAST_MS;
  const pauseMs = isGrowing || last.hasFailed ? Math.max(leastMs, PAUSE_FACTOR * last.tookMs) : 0;
  return Math.max(SOON_MS, last.endedAtMs + pauseMs - nowMs);
}

interface Options<T> {
  readonly queryKey: QueryKey;
  readonly ask: (signal: AbortSignal) => Promise<T>;
  readonly basis: Basis;
  /** Whether the response to another query may be shown until this one has its own. */
  readonly isAlike: (other: QueryKey) => boolean;
  readonly enabled?: boolean;
}

/** A query whose result is shown until a newer one replaces it. */
export function useFollowed<T>(options: Options<T>): UseQueryResult<T> {
  const { queryKey, ask, basis, isAlike, enabled = true } = options;
  const failed = useRef<Attempt | null>(null);
  return useQuery({
    enabled,
    queryKey,
    queryFn: async ({ signal }): Promise<Attempt & { readonly value: T }> => {
      const began = performance.now();
      const attempt = (): Attempt => ({
        revision: basis.revision,
        tookMs: performance.now() - began,
      });
      try {
        const value = await ask(signal);
        return { value, ...attempt() };
      } catch (problem) {
        failed.current = attempt();
        throw problem;
      }
    },
    select: ({ value }) => value,
    placeholderData: (previous, query) =>
      query && isAlike(query.queryKey) ? keepPreviousData(previous) : undefined,
    refetchInterval: ({ state: { data, dataUpdatedAt, errorUpdatedAt, error } }) => {
      const last = error === null ? data : (failed.current ?? data);
      if (!last) return false;
      // The shown result may cover fewer files than are ready: a failed request is repeated.
      const ended = {
        revision: data?.revision ?? last.revision,
        tookMs: last.tookMs,
        endedAtMs: Math.max(dataUpdatedAt, errorUpdatedAt),
        hasFailed: error !== null,
      };
      return waitMs(ended, basis, Date.now());
    },
  });
}
