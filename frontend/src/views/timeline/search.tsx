/** Search of the whole trace by name and argument: the search box, and the results as a table. */

import type { ReactNode } from 'react';
import { messageOf } from '../../core/errors';
import { count, plural } from '../../core/format';
import type { Matcher } from '../../core/search';
import { Button } from '../../widgets/button';
import { type ExportFormat, ExportMenu } from '../../widgets/export_menu';
import { Icon } from '../../widgets/icon';
import { Loaded } from '../../widgets/loaded';
import { saveTable } from '../../widgets/save_table';
import { SearchBox } from '../../widgets/table/toolbar';
import { toast } from '../../widgets/toast';
import { exportOf } from './exported';
import { type HitSearch, MOST_EXPORTED, type Page } from './hits';
import { HitsTable } from './slice_labels';
import type { Hit, Timeline } from './wire';
import '../../widgets/table/table.css';

/** Results listed at once. */
const MOST_LISTED = 250;

/** Flags by name code, 1 for a match; null without a search, or if no name matches it. */
export function highlightedNames(names: readonly string[], matcher: Matcher): Uint8Array | null {
  if (matcher.kind !== 'test') return null;
  const flags = Uint8Array.from(names, (name) => Number(matcher.test(name)));
  return flags.includes(1) ? flags : null;
}

interface BoxProps {
  readonly value: string;
  readonly matcher: Matcher;
  readonly hits: HitSearch;
  readonly onChange: (text: string) => void;
}

function countLabel({ value, hits }: BoxProps): string {
  if (value === '') return '';
  const { query, page, number } = hits;
  if (!page) return query.isFetching ? 'Searching…' : '';
  if (page.total === 0) return 'No results';
  if (number === null) return plural(page.total, 'result');
  return `${count(number + 1)} of ${count(page.total)}`;
}

export function SearchRow(props: BoxProps): ReactNode {
  const { value, matcher, hits, onChange } = props;
  const isEmpty = value === '' || !hits.page || hits.page.total === 0;
  return (
    <div className="flex">
      <SearchBox
        value={value}
        onChange={onChange}
        onEnter={(text, by) => hits.move(by, text)}
        invalid={matcher.kind === 'invalid' ? matcher.message : null}
        label="Search the whole trace"
        hasConditions={false}
      />
      {value !== '' && (
        <>
          <span className="search-count note" role="status">
            {countLabel(props)}
          </span>
          {([-1, 1] as const).map((by) => (
            <Button
              key={by}
              quiet
              square
              disabled={isEmpty}
              aria-label={by === 1 ? 'Next result' : 'Previous result'}
              title={
                by === 1 ? 'Next result (n, or Enter)' : 'Previous result (p, or Shift + Enter)'
              }
              onClick={() => hits.move(by, value)}
            >
              <span className={by === 1 ? 'turn-down' : 'turn-up'}>
                <Icon name="down" size={15} />
              </span>
            </Button>
          ))}
        </>
      )}
    </div>
  );
}

interface TabProps {
  readonly search: string;
  /** Run, worker and span, for the names of exports. */
  readonly traceName: readonly string[];
  readonly hits: HitSearch;
  readonly timeline: Timeline;
  readonly selected: number | null;
  readonly onSelect: (hit: Hit) => void;
}

/** The part of a page that holds a result; the first part without one. */
export function partWith(page: Page, number: number | null): Page {
  const at = number === null ? 0 : number - page.first;
  const from = at - (at % MOST_LISTED);
  const hits = page.hits.slice(from, from + MOST_LISTED);
  return { ...page, first: page.first + from, hits };
}

function partNote({ total, first, hits }: Page): string {
  if (total <= hits.length) return plural(total, 'result');
  const part =
    first === 0
      ? `The first ${count(hits.length)}`
      : `${count(first + 1)} to ${count(first + hits.length)}`;
  return `${part} of ${count(total)} in order of time; the strip above shows all of them.`;
}

async function save(props: TabProps, format: ExportFormat): Promise<void> {
  const { search, traceName, hits: results, timeline } = props;
  try {
    const { hits, total } = await results.all();
    const table = exportOf(hits, timeline);
    saveTable({ name: [...traceName, 'hits', search], format, table, about: { search, total } });
  } catch (error) {
    const why = messageOf(error);
    toast(`The results could not be read: ${why}`, { tone: 'bad' });
  }
}

const exportNote = (total: number): string =>
  total > MOST_EXPORTED
    ? `The first ${count(MOST_EXPORTED)} of ${count(total)} results, in full precision.`
    : 'All results, in full precision.';

export function SearchTab(props: TabProps): ReactNode {
  const { search, hits, timeline, selected, onSelect } = props;
  if (search === '') {
    return (
      <p className="panel-body muted">
        No search yet. Press <kbd>/</kbd> and type a part of a name, <code>/regex/</code>, or an
        argument such as <code>stream:7</code>. The search covers the whole trace.
      </p>
    );
  }
  return (
    <div className="panel-body">
      <Loaded query={hits.query} what="The search">
        {(first) => {
          const part = partWith(hits.page ?? first, hits.number);
          return part.total === 0 ? (
            <p className="muted">Nothing in this trace matches “{search}”.</p>
          ) : (
            <>
              <div className="hits-head flex">
                <p className="muted">{partNote(part)}</p>
                <ExportMenu
                  note={exportNote(part.total)}
                  onExport={(format) => void save(props, format)}
                />
              </div>
              <HitsTable
                caption={`Results for ${search}`}
                hits={part.hits}
                timeline={timeline}
                selected={selected}
                onSelect={onSelect}
              />
            </>
          );
        }}
      </Loaded>
    </div>
  );
}
