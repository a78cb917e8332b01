/** Looking for names and arguments in the whole recording: what was found, and going through it. */
import type { ReactNode } from 'react';
import { count, plural } from '../../core/format';
import type { Matcher } from '../../core/search';
import { type ExportFormat, ExportMenu } from '../../widgets/export_menu';
import { Icon } from '../../widgets/icon';
import { Loaded } from '../../widgets/loaded';
import { saveTable } from '../../widgets/save_table';
import { SearchBox } from '../../widgets/table/toolbar';
import { toast } from '../../widgets/toast';
import { exportOf } from './exported';
import { type Found, MOST_EXPORTED, type Page } from './hits';
import { HitsTable } from './slice_words';
import type { Hit, Timeline } from './wire';
import '../../widgets/table/table.css';

/** A part of a page of hits. */
const MOST_LISTED = 250;

/** Names that are looked for, by code; null where all are, or where names do not decide. */
export function wantedNames(names: readonly string[], matcher: Matcher): Uint8Array | null {
  if (matcher.kind !== 'test') return null;
  const wanted = Uint8Array.from(names, (name) => Number(matcher.test(name)));
  return wanted.includes(1) ? wanted : null;
}

interface BoxProps {
  readonly value: string;
  readonly matcher: Matcher;
  readonly found: Found;
  readonly onChange: (text: string) => void;
}

function countWords({ value, found }: BoxProps): string {
  if (value === '') return '';
  const { query, page, number } = found;
  if (!page) return query.isFetching ? 'Searching…' : '';
  if (page.total === 0) return 'Nothing found';
  if (number === null) return `${count(page.total)} found`;
  return `${count(number + 1)} of ${count(page.total)}`;
}

export function SearchRow(props: BoxProps): ReactNode {
  const { value, matcher, found, onChange } = props;
  const isEmpty = value === '' || !found.page || found.page.total === 0;
  return (
    <div className="timeline-search">
      <SearchBox
        value={value}
        onChange={onChange}
        onEnter={(text, by) => found.move(by, text)}
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
              title={by === 1 ? 'Next hit (n, or Enter)' : 'Previous hit (p, or Shift + Enter)'}
              onClick={() => found.move(by, value)}
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
  /** Run, worker and span, for the names of exports. */
  readonly recording: readonly string[];
  readonly found: Found;
  readonly timeline: Timeline;
  readonly selected: number | null;
  readonly onSelect: (hit: Hit) => void;
}

/** The part of a page that holds a hit; from none the first. */
export function listed(page: Page, number: number | null): Page {
  const at = number === null ? 0 : number - page.first;
  const from = at - (at % MOST_LISTED);
  const hits = page.hits.slice(from, from + MOST_LISTED);
  return { ...page, first: page.first + from, hits };
}

function Listed({ part }: { readonly part: Page }): ReactNode {
  const { total, first, hits } = part;
  if (total <= hits.length) return <p className="panel-hint">{plural(total, 'hit')}</p>;
  const which =
    first === 0
      ? `The first ${count(hits.length)}`
      : `${count(first + 1)} to ${count(first + hits.length)}`;
  return (
    <p className="panel-hint">
      {which} of {count(total)} in time; the strip above shows where all are.
    </p>
  );
}

async function save(props: TabProps, format: ExportFormat): Promise<void> {
  const { search, recording, found, timeline } = props;
  try {
    const { hits, total } = await found.all();
    const table = exportOf(hits, timeline);
    saveTable({ name: [...recording, 'hits', search], format, table, about: { search, total } });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    toast(`The hits could not be read: ${why}`, { tone: 'bad' });
  }
}

const exportNote = (total: number): string =>
  total > MOST_EXPORTED
    ? `The first ${count(MOST_EXPORTED)} of ${count(total)} hits, in full precision.`
    : 'All hits, in full precision.';

export function SearchTab(props: TabProps): ReactNode {
  const { search, found, timeline, selected, onSelect } = props;
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
      <Loaded query={found.query} what="The search">
        {(first) => {
          const part = listed(found.page ?? first, found.number);
          return part.total === 0 ? (
            <p className="panel-hint">Nothing in this recording matches “{search}”.</p>
          ) : (
            <>
              <div className="hits-head">
                <Listed part={part} />
                <ExportMenu
                  note={exportNote(part.total)}
                  onExport={(format) => void save(props, format)}
                />
              </div>
              <HitsTable
                caption={`What was found for ${search}`}
                hits={part.hits}
                tracks={timeline.tracks}
                categories={timeline.categories}
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
