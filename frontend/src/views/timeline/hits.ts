/** Steps through the results (hits) of a search over the whole trace, however many there are. */

import { type UseQueryResult, useQueryClient } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { api, type QueryOf } from '../../api/client';
import { traceKey, useTraceQuery } from '../../api/queries';
import type { TimelineHits } from '../../api/types.gen';
import { messageOf } from '../../core/errors';
import { matcherOf } from '../../core/search';
import { toast } from '../../widgets/toast';
import { useLatestRequest } from './latest_request';
import type { Hit } from './wire';

/** Hits per page. */
export const PAGE_HITS = 1000;
/** Hits per exported file: the limit of the server. */
export const MOST_EXPORTED = 10_000;
const PATH = 'timeline/search';
const URL_PATH = `traces/{trace}/${PATH}` as const;
const REGEX = /^\/(.+)\/[a-z]*$/s;

/** Consecutive hits. */
export type Page = Pick<TimelineHits, 'total' | 'first' | 'hits'>;

/** The hits from a number on, or the number of the first hit from a time on. */
type Part = { readonly offset: number } | { readonly start_ns: number };
export type FetchPage = (part: Part) => Promise<Page>;

/** The parameters of a search: a plain text or a regular expression. */
export function queryOf(search: string): { readonly q: string; readonly regex: boolean } {
  const expression = REGEX.exec(search.trim())?.[1];
  return expression === undefined
    ? { q: search.trim(), regex: false }
    : { q: expression, regex: true };
}

/** Whether a text is a valid search. */
export const isSearch = (search: string): boolean =>
  search.trim() !== '' && matcherOf(search).kind !== 'invalid';

/** The number of a hit among all, from 0; null if it is not on the page. */
export function numberOn(page: Page | undefined, event: number | null): number | null {
  const at = event === null ? -1 : (page?.hits.findIndex((hit) => hit.event === event) ?? -1);
  return page && at >= 0 ? page.first + at : null;
}

/** The start of a step: a hit by its number, else the selected event, else a time. */
export interface HitStart {
  readonly number: number | null;
  readonly event: number | null;
  readonly fromNs: number;
}

/** A hit with its number among all, and its page. */
export interface HitPosition {
  readonly number: number;
  readonly hit: Hit;
  readonly page: Page;
}

const pageOf = (fetchPage: FetchPage, number: number): Promise<Page> =>
  fetchPage({ offset: number - (number % PAGE_HITS) });

/** The number to step from: that of the selected hit, else next to the first hit from a time on. */
async function numberAt(
  fetchPage: FetchPage,
  { event, fromNs }: HitStart,
  by: -1 | 1,
): Promise<number> {
  const { first, total } = await fetchPage({ start_ns: fromNs });
  const page = await pageOf(fetchPage, Math.min(first, total - 1));
  return numberOn(page, event) ?? (by === 1 ? first - 1 : first);
}

/** The next (1) or previous (-1) hit; the first follows the last. */
export async function adjacentHit(
  fetchPage: FetchPage,
  start: HitStart,
  by: -1 | 1,
): Promise<HitPosition | null> {
  const { total } = await pageOf(fetchPage, 0);
  if (total === 0) return null;
  const here = start.number ?? (await numberAt(fetchPage, start, by));
  const number = (here + by + total) % total;
  const page = await pageOf(fetchPage, number);
  const hit = page.hits[number - page.first];
  return hit ? { number, hit, page } : null;
}

/** A time needs only the number of its first hit: no page begins there. */
const parametersOf = (search: string, part: Part): QueryOf<typeof URL_PATH> => ({
  ...queryOf(search),
  limit: 'start_ns' in part ? 0 : PAGE_HITS,
  ...part,
});

interface Cursor {
  readonly search: string;
  readonly position: HitPosition;
}

export interface HitSearch {
  readonly query: UseQueryResult<TimelineHits>;
  /** The number of the selected hit among all, from 0; null if no hit is selected. */
  readonly number: number | null;
  /** The page of the selected hit, else the first page. */
  readonly page: Page | undefined;
  readonly move: (by: -1 | 1, search: string) => void;
  /** Fetches up to `MOST_EXPORTED` hits. */
  readonly all: () => Promise<Page>;
}

interface Options {
  readonly trace: string;
  readonly search: string;
  readonly selected: number | null;
  /** Start of the first step. */
  readonly fromNs: () => number;
  readonly onHit: (hit: Hit) => void;
}

export function useHits({ trace, search, selected, fromNs, onHit }: Options): HitSearch {
  const client = useQueryClient();
  const latestRequest = useLatestRequest();
  const [cursor, setCursor] = useState<Cursor | null>(null);
  const query = useTraceQuery(trace, PATH, parametersOf(search, { offset: 0 }), {
    enabled: isSearch(search),
  });
  const latest = useRef({ search, selected, onHit });
  latest.current = { search, selected, onHit };
  // The page of the last step stays while one of its slices is selected, by a step or by a click.
  const here = cursor?.search === search ? cursor.position : null;
  const onPage = here?.hit.event === selected ? here.number : numberOn(here?.page, selected);
  const first = query.isPlaceholderData ? undefined : query.data;
  const number = here && onPage !== null ? onPage : numberOn(first, selected);

  const move = (by: -1 | 1, text: string): void => {
    if (!isSearch(text)) return;
    const fetchPage: FetchPage = (part) => {
      const parameters = parametersOf(text, part);
      return client.fetchQuery({
        queryKey: traceKey(trace, PATH, parameters),
        queryFn: ({ signal }) => api.get(URL_PATH, { trace, ...parameters }, signal),
        staleTime: Number.POSITIVE_INFINITY,
      });
    };
    const signal = latestRequest.begin();
    const isCurrent = (): boolean =>
      !signal.aborted && latest.current.search === text && latest.current.selected === selected;
    const start = { number: text === search ? number : null, event: selected, fromNs: fromNs() };
    adjacentHit(fetchPage, start, by).then(
      (match) => {
        if (!(match && isCurrent())) return;
        setCursor({ search: text, position: match });
        latest.current.onHit(match.hit);
      },
      (error: unknown) => {
        const why = messageOf(error);
        if (isCurrent()) toast(`The result could not be read: ${why}`, { tone: 'bad' });
      },
    );
  };
  const all = (): Promise<Page> => {
    const parameters = { ...parametersOf(search, { offset: 0 }), limit: MOST_EXPORTED };
    const { signal } = new AbortController();
    return api.get(URL_PATH, { trace, ...parameters }, signal);
  };
  return { query, number, page: here && onPage !== null ? here.page : first, move, all };
}
