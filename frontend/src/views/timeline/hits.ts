/** Going from hit to hit of a search through the whole recording, however many there are. */
import { type UseQueryResult, useQueryClient } from '@tanstack/react-query';
import { useRef, useState } from 'react';
import { api, type Parameters, segment } from '../../api/client';
import { useTraceAnswer } from '../../api/queries';
import type { TimelineHits } from '../../api/types.gen';
import { matcherOf } from '../../core/search';
import { toast } from '../../widgets/toast';
import { useOneQuestion } from './one_question';
import type { Hit } from './wire';

/** So many hits come at once. */
export const PAGE_HITS = 1000;
/** So many are written to a file: as many as the server lists. */
export const MOST_EXPORTED = 10_000;
const PATH = 'timeline/search';
const REGEX = /^\/(.+)\/[a-z]*$/s;

/** Some of the hits, next to each other. */
export type Page = Pick<TimelineHits, 'total' | 'first' | 'hits'>;

/** The hits behind so many, or where those from a time on begin. */
type Part = { readonly offset: number } | { readonly start_ns: number };
export type Ask = (part: Part) => Promise<Page>;

/** What the server is asked: a plain text or a regular expression. */
export function askedFor(search: string): { readonly q: string; readonly regex: boolean } {
  const expression = REGEX.exec(search.trim())?.[1];
  return expression === undefined
    ? { q: search.trim(), regex: false }
    : { q: expression, regex: true };
}

/** Whether a text can be searched for at all. */
export const isSearch = (search: string): boolean =>
  search.trim() !== '' && matcherOf(search).kind !== 'invalid';

/** A hit's number among all, from 0; null where it is not on the page. */
export function numberOn(page: Page | undefined, event: number | null): number | null {
  const at = event === null ? -1 : (page?.hits.findIndex((hit) => hit.event === event) ?? -1);
  return page && at >= 0 ? page.first + at : null;
}

/** Where one is: at a hit whose number is known, else at a time, maybe with a slice selected there. */
export interface Place {
  readonly number: number | null;
  readonly event: number | null;
  readonly fromNs: number;
}

/** A hit, its number among all, and the page that it is of. */
export interface Reached {
  readonly number: number;
  readonly hit: Hit;
  readonly page: Page;
}

const pageOf = (ask: Ask, number: number): Promise<Page> =>
  ask({ offset: number - (number % PAGE_HITS) });

/** The number to go on from: the selected slice's where it is a hit, else beside the first from a time on. */
async function numberAt(ask: Ask, { event, fromNs }: Place, by: -1 | 1): Promise<number> {
  const { first, total } = await ask({ start_ns: fromNs });
  const page = await pageOf(ask, Math.min(first, total - 1));
  return numberOn(page, event) ?? (by === 1 ? first - 1 : first);
}

/** The next hit or the one before, from where one is; behind the last comes the first. */
export async function reached(ask: Ask, place: Place, by: -1 | 1): Promise<Reached | null> {
  const { total } = await pageOf(ask, 0);
  if (total === 0) return null;
  const here = place.number ?? (await numberAt(ask, place, by));
  const number = (here + by + total) % total;
  const page = await pageOf(ask, number);
  const hit = page.hits[number - page.first];
  return hit ? { number, hit, page } : null;
}

/** Only the number of the first hit is wanted of a time: no page begins there. */
const parametersOf = (search: string, part: Part): Parameters => ({
  ...askedFor(search),
  limit: 'start_ns' in part ? 0 : PAGE_HITS,
  ...part,
});

interface Cursor {
  readonly search: string;
  readonly reached: Reached;
}

export interface Found {
  readonly query: UseQueryResult<TimelineHits>;
  /** The selected hit's number among all, from 0; null: no hit is selected, or none that is known. */
  readonly number: number | null;
  /** The hits around the selected one, else the first. */
  readonly page: Page | undefined;
  readonly move: (by: -1 | 1, search: string) => void;
  /** For a file: all hits, or the first of very many. */
  readonly all: () => Promise<Page>;
}

interface Options {
  readonly trace: string;
  readonly search: string;
  readonly selected: number | null;
  /** From when on the first hit is looked for. */
  readonly fromNs: () => number;
  readonly onHit: (hit: Hit) => void;
}

/** What a search finds, and the way through it. */
export function useHits({ trace, search, selected, fromNs, onHit }: Options): Found {
  const client = useQueryClient();
  const question = useOneQuestion();
  const [cursor, setCursor] = useState<Cursor | null>(null);
  const query = useTraceAnswer<TimelineHits>(trace, PATH, parametersOf(search, { offset: 0 }), {
    enabled: isSearch(search),
  });
  const latest = useRef({ search, selected, onHit });
  latest.current = { search, selected, onHit };
  // The page that was reached stays while a slice of it is selected, by a step or by a click.
  const here = cursor?.search === search ? cursor.reached : null;
  const onReached = here?.hit.event === selected ? here.number : numberOn(here?.page, selected);
  const first = query.isPlaceholderData ? undefined : query.data;
  const number = here && onReached !== null ? onReached : numberOn(first, selected);

  const move = (by: -1 | 1, text: string): void => {
    if (!isSearch(text)) return;
    const ask: Ask = (part) => {
      const parameters = parametersOf(text, part);
      return client.fetchQuery({
        queryKey: ['trace', trace, PATH, parameters],
        queryFn: ({ signal }) =>
          api.get<TimelineHits>(`traces/${segment(trace)}/${PATH}`, parameters, signal),
        staleTime: Number.POSITIVE_INFINITY,
      });
    };
    const signal = question.begin();
    const isWanted = (): boolean =>
      !signal.aborted && latest.current.search === text && latest.current.selected === selected;
    const place = { number: text === search ? number : null, event: selected, fromNs: fromNs() };
    reached(ask, place, by).then(
      (found) => {
        if (!(found && isWanted())) return;
        setCursor({ search: text, reached: found });
        latest.current.onHit(found.hit);
      },
      (error: unknown) => {
        const why = error instanceof Error ? error.message : String(error);
        if (isWanted()) toast(`The hit could not be read: ${why}`, { tone: 'bad' });
      },
    );
  };
  const all = (): Promise<Page> => {
    const parameters = { ...parametersOf(search, { offset: 0 }), limit: MOST_EXPORTED };
    const { signal } = new AbortController();
    return api.get<TimelineHits>(`traces/${segment(trace)}/${PATH}`, parameters, signal);
  };
  return { query, number, page: here && onReached !== null ? here.page : first, move, all };
}
