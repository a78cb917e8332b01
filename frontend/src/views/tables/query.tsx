/** SQL queries over the tables of the selected trace, or of all traces of its run. */
import { keepPreviousData, type UseQueryResult, useQuery } from '@tanstack/react-query';
import { type ReactNode, useEffect, useRef, useState } from 'react';
import { api, RequestError } from '../../api/client';
import { useNarrowing } from '../../api/queries';
import type { QueryExample, QueryRows, QueryTables } from '../../api/types.gen';
import { count, plural } from '../../core/format';
import { sentence } from '../../core/sentence';
import { useNavigation } from '../../state/navigation';
import { withOptions } from '../../state/option';
import type { Selection } from '../../state/selection';
import { Button } from '../../widgets/button';
import { Copy } from '../../widgets/copy';
import { Failure } from '../../widgets/failure';
import { Loaded } from '../../widgets/loaded';
import { useSegments } from '../../widgets/segmented';
import { DataTable } from '../../widgets/table';
import type { PageProps } from '../view';
import { QueryEditor } from './query_editor';

const BAD_QUERY = 'bad-query';
/** The server counts rows up to this number. */
const MOST_COUNTED = 1_000_000;
const SCOPES = [
  { id: 'trace', label: 'This trace' },
  { id: 'run', label: 'All traces of the run' },
] as const;
type Scope = (typeof SCOPES)[number]['id'];

/** The rows of the query in the URL. */
function useRows({ run, span }: Selection, sql: string, scope: Scope): UseQueryResult<QueryRows> {
  const narrowing = useNarrowing(span.trace);
  const { start_ns = null, end_ns = null } = (scope === 'trace' && narrowing) || {};
  const trace = scope === 'trace' ? span.trace : null;
  const parameters = { run: run.id, sql, trace, start_ns, end_ns };
  return useQuery({
    queryKey: ['run', run.id, 'runs/{run}/query', parameters],
    queryFn: ({ signal }) => api.get('runs/{run}/query', parameters, signal),
    placeholderData: keepPreviousData,
    staleTime: Number.POSITIVE_INFINITY,
    enabled: sql !== '' && narrowing !== undefined,
  });
}

interface Draft {
  readonly draft: string;
  readonly edit: (sql: string) => void;
}

/** The text of the query, which follows the URL. */
function useDraft(sql: string): Draft {
  const [draft, edit] = useState(sql);
  const shown = useRef(sql);
  useEffect(() => {
    if (sql === shown.current) return;
    shown.current = sql;
    edit(sql);
  }, [sql]);
  return { draft, edit };
}

/** The message of a query that cannot run; other failures take the place of the rows. */
function messageOf(error: Error | null): string | null {
  if (!(error instanceof RequestError) || error.code !== BAD_QUERY) return null;
  return error.message.includes('\n') ? error.message : sentence(error.message);
}

interface ExamplesProps {
  readonly examples: readonly QueryExample[];
  readonly onChoose: (sql: string) => void;
}

function Examples({ examples, onChoose }: ExamplesProps): ReactNode {
  return (
    <select
      aria-label="Examples"
      value=""
      onChange={(event) => onChoose(examples[Number(event.target.value)]?.sql ?? '')}
    >
      <option value="" disabled hidden>
        Examples
      </option>
      {examples.map(({ title }, index) => (
        <option key={title} value={index}>
          {title}
        </option>
      ))}
    </select>
  );
}

function NotInstalled({ install }: { readonly install: string }): ReactNode {
  return (
    <p className="bar wrap">
      Queries need DuckDB where the server runs: <code>{install}</code>
      <Copy text={install} quiet />
    </p>
  );
}

/** Rows and traces that are missing. */
function notesOf({ all_row_count, is_counted, notes }: QueryRows): readonly string[] {
  if (all_row_count === null) return notes.map(sentence);
  const others = is_counted
    ? 'The other rows'
    : `The other rows, of more than ${count(MOST_COUNTED)},`;
  return [
    `${others} are not sent: aggregate them, or use stepscope query.`,
    ...notes.map(sentence),
  ];
}

function Notes({ rows }: { readonly rows: QueryRows }): ReactNode {
  const notes = notesOf(rows);
  if (notes.length === 0) return null;
  return (
    <ul className="bar muted">
      {notes.map((note) => (
        <li key={note}>{note}</li>
      ))}
    </ul>
  );
}

/** Rows as a table; the plan of EXPLAIN as DuckDB draws it. */
function Rows({
  rows,
  children,
}: {
  readonly rows: QueryRows;
  readonly children: ReactNode;
}): ReactNode {
  const plan = rows.values.explain_value;
  if (plan) return <pre className="query-plan">{plan.join('\n')}</pre>;
  if (rows.row_count > 0) return children;
  return (
    <div>
      <Notes rows={rows} />
      <p className="bar muted">{rows.empty}</p>
    </div>
  );
}

interface ResultProps {
  readonly selection: Selection;
  readonly query: UseQueryResult<QueryRows>;
  readonly scope: Scope;
}

function Result({ selection, query, scope }: ResultProps): ReactNode {
  const { run, worker, span } = selection;
  if (query.error) {
    return (
      <div className="page">
        <Failure error={query.error} what="The query" retry={() => void query.refetch()} />
      </div>
    );
  }
  return (
    <Loaded query={query} what="The rows of the query">
      {(rows) => (
        <Rows rows={rows}>
          <DataTable
            key={rows.columns.map(({ key }) => key).join()}
            table={rows}
            name="query"
            label="Rows"
            traceName={scope === 'run' ? [run.name] : [run.name, worker.name, span.label]}
            isStale={query.isPlaceholderData}
            above={() => <Notes rows={rows} />}
          />
        </Rows>
      )}
    </Loaded>
  );
}

interface PanelProps extends PageProps {
  readonly names: QueryTables;
}

/** The text of a query, and its rows. */
export function QueryPanel({ selection, names }: PanelProps): ReactNode {
  const { location, go } = useNavigation();
  const sql = location.options.sql ?? '';
  const traceCount = selection.run.workers.flatMap(({ spans }) => spans).length;
  const [scope, scopes] = useSegments<Scope>('scope', { label: 'Traces', segments: SCOPES });
  const query = useRows(selection, sql, scope);
  const { draft, edit } = useDraft(sql);
  const message = sql === '' ? null : messageOf(query.error);
  const run = (): void => {
    const text = draft.trim();
    if (text === sql) void query.refetch();
    else {
      const options = withOptions(location.options, { sql: text, row: null });
      go({ search: '', sort: null, options });
    }
  };
  return (
    <div className="query column grow">
      {!names.is_available && <NotInstalled install={names.install} />}
      <div className="query-panel">
        <QueryEditor
          sql={draft}
          tables={names.tables}
          isInvalid={message !== null}
          onChange={edit}
          onRun={run}
        />
        <div className="wrap">
          <Button onClick={run} disabled={draft.trim() === '' || !names.is_available}>
            Run <kbd>Ctrl Enter</kbd>
          </Button>
          <Examples examples={names.examples} onChoose={edit} />
          {traceCount > 1 && scopes}
          <span className="note">
            {query.isFetching
              ? 'Running…'
              : `DuckDB SQL over ${plural(names.tables.length, 'table')}`}
          </span>
        </div>
        {message !== null && !query.isFetching && (
          <pre className="query-error bad" role="alert">
            {message}
          </pre>
        )}
      </div>
      {sql !== '' && message === null && (
        <Result selection={selection} query={query} scope={scope} />
      )}
    </div>
  );
}
