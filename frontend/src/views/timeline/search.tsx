/** Looking for names and arguments in the whole recording: what was found, and going through it. */
import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import type { TimelineHits } from '../../api/types.gen';
import { count } from '../../core/format';
import type { Matcher } from '../../core/search';
import { Icon } from '../../widgets/icon';
import { Loaded } from '../../widgets/loaded';
import { SearchBox } from '../../widgets/table/toolbar';
import { HitsTable } from './slice_words';
import type { Hit, Timeline } from './wire';
import '../../widgets/table/table.css';

export const MOST_HITS = 1000;
const MOST_LISTED = 300;

const REGEX = /^\/(.+)\/[a-z]*$/s;

/** What the server is asked: a plain text or a regular expression. */
export function askedFor(search: string): { readonly q: string; readonly regex: boolean } {
  const expression = REGEX.exec(search.trim())?.[1];
  return expression === undefined
    ? { q: search.trim(), regex: false }
    : { q: expression, regex: true };
}

/** Names that are looked for, by code; null where all are, or where names do not decide. */
export function wantedNames(names: readonly string[], matcher: Matcher): Uint8Array | null {
  if (matcher.kind !== 'test') return null;
  const wanted = Uint8Array.from(names, (name) => Number(matcher.test(name)));
  return wanted.includes(1) ? wanted : null;
}

/** The hit behind or before the selected one; from none the first or the last. */
export function nextHit(hits: readonly Hit[], event: number | null, by: -1 | 1): Hit | undefined {
  const at = hits.findIndex((hit) => hit.event !== null && hit.event === event);
  if (at === -1) return hits.at(by === 1 ? 0 : -1);
  return hits[(at + by + hits.length) % hits.length];
}

interface BoxProps {
  readonly value: string;
  readonly matcher: Matcher;
  readonly query: UseQueryResult<TimelineHits>;
  readonly selected: number | null;
  readonly onChange: (text: string) => void;
  readonly onMove: (by: -1 | 1) => void;
}

function countWords({ value, query, selected }: BoxProps): string {
  if (value === '') return '';
  const { data } = query;
  if (!data) return query.isFetching ? 'Searching…' : '';
  if (data.total === 0) return 'Nothing found';
  const at = data.hits.findIndex((hit) => hit.event !== null && hit.event === selected);
  return at === -1 ? `${count(data.total)} found` : `${count(at + 1)} of ${count(data.total)}`;
}

export function SearchRow(props: BoxProps): ReactNode {
  const { value, matcher, query, onChange, onMove } = props;
  const isEmpty = value === '' || !query.data || query.data.total === 0;
  return (
    <div className="timeline-search">
      <SearchBox
        value={value}
        onChange={onChange}
        invalid={matcher.kind === 'invalid' ? matcher.message : null}
        label="Search the whole recording"
        hasConditions={false}
      />
      {value !== '' && (
        <>
          <span className="search-count" role="status">
            {countWords(props)}
          </span>
          {([-1, 1] as const).map((by) => (
            <button
              key={by}
              type="button"
              className="button quiet square"
              disabled={isEmpty}
              aria-label={by === 1 ? 'Next hit' : 'Previous hit'}
              title={by === 1 ? 'Next hit (n)' : 'Previous hit (p)'}
              onClick={() => onMove(by)}
            >
              <span className={by === 1 ? 'turn-down' : 'turn-up'}>
                <Icon name="down" size={15} />
              </span>
            </button>
          ))}
        </>
      )}
    </div>
  );
}

interface TabProps {
  readonly search: string;
  readonly query: UseQueryResult<TimelineHits>;
  readonly timeline: Timeline;
  readonly selected: number | null;
  readonly onSelect: (hit: Hit) => void;
}

export function SearchTab({ search, query, timeline, selected, onSelect }: TabProps): ReactNode {
  if (search === '') {
    return (
      <p className="panel-body panel-hint">
        Nothing is looked for. <kbd>/</kbd> leads to the search: words of a name,{' '}
        <code>/regex/</code>, or an argument as <code>stream:7</code>. It looks through the whole
        recording.
      </p>
    );
  }
  return (
    <div className="panel-body">
      <Loaded query={query} what="The search">
        {(found) =>
          found.total === 0 ? (
            <p className="panel-hint">Nothing in this recording matches “{search}”.</p>
          ) : (
            <>
              {found.total > MOST_LISTED && (
                <p className="panel-hint">
                  The first {count(Math.min(MOST_LISTED, found.hits.length))} of{' '}
                  {count(found.total)} in time; the strip above shows where all are.
                </p>
              )}
              <HitsTable
                caption={`What was found for ${search}`}
                hits={found.hits.slice(0, MOST_LISTED)}
                tracks={timeline.tracks}
                categories={timeline.categories}
                selected={selected}
                onSelect={onSelect}
              />
            </>
          )
        }
      </Loaded>
    </div>
  );
}
