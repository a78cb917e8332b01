import { type ReactNode, useCallback, useDeferredValue, useEffect, useMemo, useRef } from 'react';
import type { Column, Table } from '../../api/types.gen';
import { type ExportTable, toMarkdown } from '../../core/export';
import type { Sort } from '../../state/location';
import { type Patch, useNavigation } from '../../state/navigation';
import { withOptions } from '../../state/option';
import { Button } from '../button';
import { Empty } from '../empty';
import { type ExportFormat, ExportMenu } from '../export_menu';
import { saveTable } from '../save_table';
import { ViewHeader } from '../view_header';
import type { Look } from './cell';
import { useColumnsShown } from './columns_shown';
import { ROW_PX, useDensity } from './density';
import { RowDrawer } from './details';
import { Grid } from './grid';
import { exampleOf, type Query, queryOf } from './query';
import {
  cellOf,
  identityOf,
  missesOf,
  orderedRows,
  type Rows,
  rowName,
  rowNamed,
  shownRows,
} from './rows';
import { ColumnChooser, GroupBy, RowCount, SearchBox } from './toolbar';
import { useColumnWidths } from './widths';
import './table.css';

/** The state of a table for components above it. */
export interface ShownTable {
  readonly table: Table;
  readonly rows: Rows;
  readonly sort: Sort;
  readonly selected: number | null;
  readonly select: (at: number | null) => void;
}

interface Props {
  readonly table: Table;
  /** The view's id, for the column settings and file names. */
  readonly name: string;
  readonly label: string;
  /** Run, worker and span, for file names. */
  readonly traceName: readonly string[];
  /** True while another grouping is loading. */
  readonly isStale: boolean;
  /** Columns that identify a row; by default its event, else all its texts. */
  readonly identity?: readonly string[] | undefined;
  /** Details of a row in the drawer. */
  readonly details?: ((at: number) => ReactNode) | undefined;
  /** Where a click on a row leads instead of its details; null: it shows them. */
  readonly follow?: ((at: number) => Patch | null) | undefined;
  /** Shown between the toolbar and the rows. */
  readonly above?: ((shown: ShownTable) => ReactNode) | undefined;
  readonly look?: Look | undefined;
  /** Receives the row under the pointer. */
  readonly onHover?: (at: number | null) => void;
  /** Further fields of an exported JSON. */
  readonly about?: Readonly<Record<string, unknown>>;
  /** Shown first in the toolbar. */
  readonly tools?: ReactNode;
}

function usualSort(table: Table): Sort {
  return { key: table.sort, descending: true };
}

/** The order in the URL, if the table has that column. */
function sortOf(table: Table, requested: Sort | null): Sort {
  return requested && table.columns.some((column) => column.key === requested.key)
    ? requested
    : usualSort(table);
}

interface Shown {
  readonly columns: readonly Column[];
  readonly rows: Rows;
}

interface ExportOptions {
  readonly props: Props;
  readonly shown: Shown;
  readonly search: string;
  readonly format: ExportFormat;
}

function exportOf({ table }: Props, shown: Shown): ExportTable {
  return {
    columns: shown.columns,
    rows: Array.from(shown.rows, (at) =>
      shown.columns.map((column) => cellOf(table, column.key, at)),
    ),
  };
}

function save({ props, shown, search, format }: ExportOptions): void {
  const { table, name, traceName, about: more } = props;
  const { group, schema } = table;
  const exported = exportOf(props, shown);
  const about = { table: name, trace: traceName, group, search, schema, ...more };
  saveTable({ name: [...traceName, name], format, table: exported, about });
}

interface Choice {
  readonly selected: number | null;
  readonly select: (at: number | null) => void;
}

/** The selected row, which the URL names by its contents. */
function useSelectedRow({ table, identity: requested, follow }: Props): Choice {
  const { location, go } = useNavigation();
  const named = location.options.row;
  const identity = useMemo(() => identityOf(table, requested), [table, requested]);
  const selected = useMemo(
    () => (named === undefined ? null : rowNamed(table, identity, named)),
    [table, identity, named],
  );
  const latest = useRef({ options: location.options, follow });
  latest.current = { options: location.options, follow };
  const select = useCallback(
    (at: number | null) => {
      const target = at === null ? null : latest.current.follow?.(at);
      if (target) {
        go(target);
        return;
      }
      const row = at === null ? null : rowName(table, identity, at);
      go({ options: withOptions(latest.current.options, { row }) }, 'replace');
    },
    [table, identity, go],
  );
  return { selected, select };
}

/** Sorts columns in idle time, so that the first click is fast. */
function useWarmOrders(table: Table, columns: readonly Column[]): void {
  useEffect(() => {
    if (table.row_count < 20_000 || !('requestIdleCallback' in window)) return undefined;
    const left = columns.map((column) => column.key);
    let handle = 0;
    const next = (): void => {
      const key = left.shift();
      if (key === undefined) return;
      orderedRows(table, key, true);
      handle = window.requestIdleCallback(next);
    };
    handle = window.requestIdleCallback(next);
    return () => window.cancelIdleCallback(handle);
  }, [table, columns]);
}

interface ToolbarProps {
  readonly props: Props;
  readonly query: Query;
  readonly shown: Shown;
  readonly onSearch: (text: string) => void;
  readonly choice: ReturnType<typeof useColumnsShown>;
  readonly density: ReturnType<typeof useDensity>;
  readonly onUsual: () => void;
}

function Toolbar(toolbar: ToolbarProps): ReactNode {
  const { props, query, shown, onSearch, choice, density, onUsual } = toolbar;
  const { table, label } = props;
  const { location, go } = useNavigation();
  const count = (
    <RowCount
      shown={shown.rows.length}
      all={table.row_count}
      whole={table.all_row_count}
      matches={table.match_count}
    />
  );
  return (
    <ViewHeader title={label} note={count}>
      {props.tools}
      <SearchBox
        value={location.search}
        onChange={onSearch}
        invalid={null}
        problem={query.kind === 'invalid' ? query.message : null}
        example={exampleOf(table)}
      />
      <GroupBy
        groups={table.groups}
        value={location.group ?? table.group}
        onChange={(group) =>
          go({ group, options: withOptions(location.options, { row: null }) }, 'replace')
        }
      />
      <ColumnChooser
        columns={table.columns}
        choice={choice}
        density={density[0]}
        onDensity={density[1]}
        onUsual={onUsual}
      />
      <ExportMenu
        note="The rows and columns shown, in full precision."
        onExport={(format) => save({ props, shown, search: location.search, format })}
        markdown={() => toMarkdown(exportOf(props, shown))}
      />
    </ViewHeader>
  );
}

function NoMatch({
  search,
  clear,
}: {
  readonly search: string;
  readonly clear: () => void;
}): ReactNode {
  return (
    <div className="table-none">
      <p>No row matches “{search}”.</p>
      <Button onClick={clear}>Clear the search</Button>
    </div>
  );
}

function FilledTable(props: Props): ReactNode {
  const { table, name, label } = props;
  const { location, go } = useNavigation();
  const search = useDeferredValue(location.search);
  const query = useMemo(() => queryOf(table, search), [table, search]);
  const misses = useMemo(() => missesOf(table, query), [table, query]);
  const sort = sortOf(table, location.sort);
  const rows = useMemo(
    () => shownRows(orderedRows(table, sort.key, sort.descending), misses),
    [table, sort.key, sort.descending, misses],
  );
  const choice = useColumnsShown(name, table.columns);
  const columns = useMemo(
    () => table.columns.filter((column) => choice.shown[column.key]),
    [table, choice.shown],
  );
  const widths = useColumnWidths(name);
  const density = useDensity();
  const { selected, select } = useSelectedRow(props);
  useWarmOrders(table, table.columns);
  const onSearch = useCallback((text: string) => go({ search: text }, 'replace'), [go]);
  const onUsual = (): void => {
    choice.reset();
    for (const key of Object.keys(widths.widths)) widths.resize(key, null);
  };
  return (
    <div
      className={
        props.isStale
          ? 'full-view column grow table-view stale'
          : 'full-view column grow table-view'
      }
      aria-busy={props.isStale}
    >
      <Toolbar
        props={props}
        query={query}
        shown={{ columns, rows }}
        onSearch={onSearch}
        choice={choice}
        density={density}
        onUsual={onUsual}
      />
      {props.above?.({ table, rows, sort, selected, select })}
      <div className="table-body">
        <Grid
          table={table}
          columns={columns}
          rows={rows}
          sort={sort}
          label={label}
          rowPx={ROW_PX[density[0]]}
          widths={widths}
          selected={selected}
          look={props.look}
          onHover={props.onHover}
          onSort={(next) => go({ sort: next }, 'replace')}
          onSelect={select}
          onNarrow={(condition) => onSearch(`${location.search} ${condition}`.trim())}
        />
        {rows.length === 0 && <NoMatch search={search} clear={() => onSearch('')} />}
        {selected !== null && (
          <RowDrawer table={table} at={selected} close={() => select(null)}>
            {props.details?.(selected)}
          </RowDrawer>
        )}
      </div>
    </div>
  );
}

/** A table of the API with search, sorting, grouping, column selection and export. */
export function DataTable(props: Props): ReactNode {
  const { table, label } = props;
  const isSearched = table.match_count !== null && table.match_count !== undefined;
  if (table.row_count > 0 || isSearched) return <FilledTable {...props} key={table.group} />;
  return (
    <div className="page">
      <ViewHeader title={label}>{props.tools}</ViewHeader>
      <Empty icon="info" title={`${label}: nothing was recorded`}>
        <p>{table.empty}</p>
      </Empty>
    </div>
  );
}
