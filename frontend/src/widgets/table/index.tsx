import { type ReactNode, useCallback, useDeferredValue, useMemo, useState } from 'react';
import type { Table } from '../../api/types.gen';
import { fileName, toCsv, toJson } from '../../core/export';
import { matcherOf } from '../../core/search';
import { download } from '../../host/download';
import type { Sort } from '../../state/location';
import { useNavigation } from '../../state/navigation';
import { Empty } from '../empty';
import { ExportMenu } from '../export_menu';
import { useColumnsShown } from './columns_shown';
import { RowDrawer } from './details';
import { Grid } from './grid';
import { type ShownTable, useTableModel } from './model';
import { cellOf, matchingRows } from './rows';
import { ColumnChooser, GroupBy, RowCount, SearchBox } from './toolbar';
import './table.css';

interface Props {
  readonly table: Table;
  /** The view's id: its column choice is kept under it, its exports are named after it. */
  readonly name: string;
  readonly label: string;
  /** Run, worker and span, for the names of exports. */
  readonly recording: readonly string[];
  /** True while another grouping is on its way. */
  readonly isStale: boolean;
}

function usualSort(table: Table): Sort {
  return { key: table.sort, descending: true };
}

/** The URL's order, where the table has such a column. */
function sortOf(table: Table, wanted: Sort | null): Sort {
  return wanted && table.columns.some((column) => column.key === wanted.key)
    ? wanted
    : usualSort(table);
}

interface ExportOptions {
  readonly props: Props;
  readonly shown: ShownTable;
  readonly search: string;
  readonly format: 'csv' | 'json';
}

function save({ props, shown, search, format }: ExportOptions): void {
  const { table, name, recording } = props;
  const exported = {
    columns: shown.columns,
    rows: shown.rows.map((row) => shown.columns.map((column) => cellOf(table, column.key, row.at))),
  };
  const about = { table: name, recording, group: table.group, search, schema: table.schema };
  const text = format === 'csv' ? toCsv(exported) : toJson(exported, about);
  const type = format === 'csv' ? 'text/csv' : 'application/json';
  download(fileName([...recording, name], format), type, text);
}

function FilledTable(props: Props): ReactNode {
  const { table, name, label } = props;
  const { location, go } = useNavigation();
  const search = useDeferredValue(location.search);
  const matcher = useMemo(() => matcherOf(search), [search]);
  const rows = useMemo(() => matchingRows(table, matcher), [table, matcher]);
  const sort = sortOf(table, location.sort);
  const choice = useColumnsShown(name, table.columns);
  const shown = useTableModel({ table, rows, sort, shown: choice.shown });
  const [selected, setSelected] = useState<number | null>(null);
  const onSearch = useCallback((text: string) => go({ search: text }, 'replace'), [go]);
  const close = useCallback(() => setSelected(null), []);
  return (
    <div className={props.isStale ? 'table-view stale' : 'table-view'} aria-busy={props.isStale}>
      <div className="toolbar">
        <SearchBox
          value={location.search}
          onChange={onSearch}
          invalid={matcher.kind === 'invalid' ? matcher.message : null}
        />
        <GroupBy
          groups={table.groups}
          value={location.group ?? table.group}
          onChange={(group) => go({ group }, 'replace')}
        />
        <RowCount shown={shown.rows.length} all={table.row_count} />
        <span className="space" />
        <ColumnChooser columns={table.columns} choice={choice} />
        <ExportMenu
          note="The rows and columns shown, in full precision."
          onExport={(format) => save({ props, shown, search, format })}
        />
      </div>
      <div className="table-body">
        <Grid
          table={table}
          shown={shown}
          sort={sort}
          label={label}
          selected={selected}
          onSort={(next) => go({ sort: next }, 'replace')}
          onSelect={setSelected}
        />
        {shown.rows.length === 0 && (
          <div className="table-none">
            <p>No row matches “{search}”.</p>
            <button type="button" className="button" onClick={() => onSearch('')}>
              Clear the search
            </button>
          </div>
        )}
        {selected !== null && selected < table.row_count && (
          <RowDrawer table={table} at={selected} close={close} />
        )}
      </div>
    </div>
  );
}

/** A table of the API: searched, sorted, grouped, its columns chosen, exported. */
export function DataTable(props: Props): ReactNode {
  const { table, label } = props;
  if (table.row_count > 0) return <FilledTable {...props} key={table.group} />;
  return (
    <div className="page">
      <Empty icon="info" title={`${label}: nothing was recorded`}>
        <p>{table.empty}</p>
      </Empty>
    </div>
  );
}
