import type { UseQueryResult } from '@tanstack/react-query';
import type { ReactNode } from 'react';
import { useNarrowing, useRunQuery, useStaticQuery, useTraceQuery } from '../../api/queries';
import type { Table, TableInfo, TablesQuery } from '../../api/types.gen';
import { count } from '../../core/format';
import { useNavigation } from '../../state/navigation';
import { withOptions } from '../../state/option';
import { Button } from '../../widgets/button';
import { Failure } from '../../widgets/failure';
import { Loaded } from '../../widgets/loaded';
import { DataTable } from '../../widgets/table';
import { serverText } from '../../widgets/table/query';
import type { PageProps } from '../view';
import { QUERY, TableList } from './list';
import { QueryPanel } from './query';
import './tables.css';

const DEFAULT_TABLE = 'steps';
/** Most rows of a response. */
const MOST_ROWS = 200_000;

/** Whether there are more rows, or matches of a search, than the server sent. */
const isCut = ({ all_row_count, match_count, row_count }: Table): boolean =>
  (match_count ?? all_row_count ?? 0) > row_count;

type Rows = Partial<Pick<TablesQuery, 'sort' | 'descending' | 'search' | 'limit'>>;

/**
 * The server sorts and searches if it does not send all rows. It searches texts; for other searches it sends as many
 * rows as it can.
 */
function useRows(table: Table | undefined): Rows {
  const { sort, search: typed } = useNavigation().location;
  const search = typed.trim();
  if (!table || !isCut(table)) return {};
  const text = serverText(table, search);
  return {
    ...(sort && { sort: sort.key, descending: sort.descending }),
    ...(text !== null && { search: text }),
    ...(search !== '' && { limit: MOST_ROWS }),
  };
}

/** The limit of rows: the default, or the maximum. */
function useLimit(): number | null {
  const { location } = useNavigation();
  return location.options.rows === 'all' ? MOST_ROWS : null;
}

interface MoreProps {
  readonly table: Table;
}

/** The meaning of the table, and a button for the remaining rows. */
function About({ table }: MoreProps): ReactNode {
  const { location, go } = useNavigation();
  const all = table.all_row_count ?? table.row_count;
  return (
    <div className="bar wrap">
      <p>{table.meaning}</p>
      {isCut(table) && location.options.rows !== 'all' && (
        <Button
          onClick={() => go({ options: withOptions(location.options, { rows: 'all' }) }, 'replace')}
        >
          {all > MOST_ROWS ? `Load ${count(MOST_ROWS)} rows` : `Load all ${count(all)} rows`}
        </Button>
      )}
      {isCut(table) && location.options.rows === 'all' && (
        <p className="muted">
          For more than {count(MOST_ROWS)} rows use <code>stepscope export</code>.
        </p>
      )}
    </div>
  );
}

interface ShownProps extends PageProps {
  readonly info: TableInfo;
}

type AnyQuery = UseQueryResult<Table>;

function Shown({ info, selection, query }: ShownProps & { readonly query: AnyQuery }): ReactNode {
  const { run, worker, span } = selection;
  if (query.error) {
    return (
      <div className="page">
        <Failure error={query.error} what={info.title} retry={() => void query.refetch()} />
      </div>
    );
  }
  return (
    <Loaded query={query} what={info.title}>
      {(table) => (
        <DataTable
          key={info.name}
          table={table}
          name={info.name}
          label={info.title}
          traceName={info.is_of_run ? [run.name] : [run.name, worker.name, span.label]}
          isStale={query.isPlaceholderData}
          above={() => <About table={table} />}
        />
      )}
    </Loaded>
  );
}

function TraceTable(props: ShownProps): ReactNode {
  const { info, selection } = props;
  const narrowing = useNarrowing(selection.span.trace);
  const { start_ns, end_ns } = narrowing ?? {};
  const limit = useLimit();
  const { name } = info;
  const parameters = { name, start_ns, end_ns, limit };
  const enabled = narrowing !== undefined;
  const { trace } = selection.span;
  const first = useTraceQuery(trace, 'tables/{name}', parameters, { enabled });
  const rows = useRows(first.data);
  const query = useTraceQuery(trace, 'tables/{name}', { ...parameters, ...rows }, { enabled });
  return <Shown {...props} query={query} />;
}

function RunTable(props: ShownProps): ReactNode {
  const { info, selection } = props;
  // The server lists the tables of a run that there are.
  const path = `runs/{run}/tables/${info.name}` as 'runs/{run}/tables/ranks';
  const limit = useLimit();
  const rows = useRows(useRunQuery(selection.run, path, { limit }).data);
  return <Shown {...props} query={useRunQuery(selection.run, path, { limit, ...rows })} />;
}

function Query({ selection }: PageProps): ReactNode {
  const names = useStaticQuery('query-tables', {});
  return (
    <Loaded query={names} what="The names of tables and columns">
      {(tables) => <QueryPanel selection={selection} names={tables} />}
    </Loaded>
  );
}

export default function Page({ selection }: PageProps): ReactNode {
  const { location } = useNavigation();
  const list = useStaticQuery('tables', {});
  return (
    <Loaded query={list} what="The list of tables">
      {({ tables }) => {
        const requested = location.options.table ?? DEFAULT_TABLE;
        const info = tables.find(({ name }) => name === requested) ?? tables[0];
        if (!info) return null;
        return (
          <div className="tables-view full-view column grow">
            <TableList tables={tables} selected={requested === QUERY ? QUERY : info.name} />
            {requested === QUERY ? (
              <Query selection={selection} />
            ) : info.is_of_run ? (
              <RunTable key={info.name} info={info} selection={selection} />
            ) : (
              <TraceTable key={info.name} info={info} selection={selection} />
            )}
          </div>
        );
      }}
    </Loaded>
  );
}
