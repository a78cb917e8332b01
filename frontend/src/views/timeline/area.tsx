/** The summary of an area: time by name, and how busy each track was. */
import { type ReactNode, useMemo } from 'react';
import { useTraceQuery } from '../../api/queries';
import type { Column, TimelineArea } from '../../api/types.gen';
import {
  count,
  duration,
  instant,
  plural,
  quantity,
  quantityExact,
  share,
} from '../../core/format';
import { shortName } from '../../core/names';
import { isNumeric } from '../../core/units';
import type { Sort } from '../../state/location';
import { Button } from '../../widgets/button';
import { ExportMenu } from '../../widgets/export_menu';
import { Loaded } from '../../widgets/loaded';
import { PlainTable } from '../../widgets/plain_table';
import { saveTable } from '../../widgets/save_table';
import { ariaSort, toggledSort } from '../../widgets/table/sort_header';
import type { Area } from './settings';
import { categoryLabel, trackLabel } from './slice_labels';
import type { Timeline } from './wire';

const MOST_ROWS = 200;

type Cells = TimelineArea['table'];
type Value = string | number | null;

const cellOf = (table: Cells, key: string, at: number): Value =>
  (table.values[key]?.[at] ?? null) as Value;

function compare(a: Value, b: Value): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  return String(a ?? '').localeCompare(String(b ?? ''));
}

/** Row numbers in the order of a column; rows without a value come last. */
export function orderOf(table: Cells, sort: Sort): number[] {
  const rows = Array.from({ length: table.row_count }, (_, at) => at);
  const sign = sort.descending ? -1 : 1;
  const cell = (at: number): Value => cellOf(table, sort.key, at);
  return rows.sort((a, b) => {
    const [left, right] = [cell(a), cell(b)];
    if (left === null || right === null) return Number(left === null) - Number(right === null);
    return sign * compare(left, right);
  });
}

interface TableProps {
  readonly timeline: Timeline;
  readonly table: Cells;
  readonly sort: Sort;
  readonly onSort: (sort: Sort) => void;
  readonly order: readonly number[];
}

function AreaTable({ table, sort, onSort, order, timeline }: TableProps): ReactNode {
  const columns = table.columns.filter((column) => !column.hidden);
  const textOf = ({ key, unit }: Column, value: Value): string => {
    if (typeof value !== 'string') return quantity(value, unit);
    return key === 'category' ? categoryLabel(timeline.categories, value) : shortName(value);
  };
  const sortBy = ({ key, unit }: Column): void => onSort(toggledSort(sort, key, isNumeric(unit)));
  return (
    <div className="panel-body">
      <table className="plain slices-table">
        <caption className="visually-hidden">Time in the area by name</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <th
                key={column.key}
                scope="col"
                className={isNumeric(column.unit) ? 'number' : ''}
                aria-sort={ariaSort(sort, column.key)}
              >
                <button type="button" title={column.help} onClick={() => sortBy(column)}>
                  {column.label}
                  {sort.key === column.key && (sort.descending ? ' ↓' : ' ↑')}
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {order.slice(0, MOST_ROWS).map((at) => (
            <tr key={at}>
              {columns.map((column) => {
                const { key, unit } = column;
                const value = cellOf(table, key, at);
                return (
                  <td
                    key={key}
                    className={isNumeric(unit) ? 'number' : unit === 'code' ? 'mono' : ''}
                    title={quantityExact(value, unit)}
                  >
                    {textOf(column, value)}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
      {order.length > MOST_ROWS && (
        <p className="muted">
          The first {count(MOST_ROWS)} of {count(order.length)} names; an export contains all.
        </p>
      )}
    </div>
  );
}

/** Ways to select an area without dragging. */
export interface Summarize {
  readonly visible: () => void;
  /** Null without a selected slice. */
  readonly selected: (() => void) | null;
}

function SummarizeButtons({ summarize }: { readonly summarize: Summarize }): ReactNode {
  return (
    <>
      <Button
        quiet
        title="The visible time range on the visible tracks"
        onClick={summarize.visible}
      >
        Summarize visible range
      </Button>
      <Button
        quiet
        title="All tracks during the selected slice"
        disabled={summarize.selected === null}
        onClick={() => summarize.selected?.()}
      >
        Summarize selected slice
      </Button>
    </>
  );
}

interface Props {
  readonly trace: string;
  readonly traceName: readonly string[];
  readonly timeline: Timeline;
  readonly area: Area | null;
  readonly sort: Sort | null;
  readonly onSort: (sort: Sort) => void;
  readonly summarize: Summarize;
  readonly onNarrow: () => void;
  readonly onClear: () => void;
}

interface SummaryProps extends Props {
  readonly area: Area;
  readonly summary: TimelineArea;
}

function AreaSummary(props: SummaryProps): ReactNode {
  const { summary, timeline, area, sort: requested } = props;
  const { table } = summary;
  const isColumn = table.columns.some((column) => column.key === requested?.key);
  const sort = requested && isColumn ? requested : { key: table.sort, descending: true };
  const { key, descending } = sort;
  const order = useMemo(() => orderOf(table, { key, descending }), [table, key, descending]);
  const save = (format: 'csv' | 'json'): void => {
    const rows = order.map((at) => table.columns.map((column) => cellOf(table, column.key, at)));
    const exported = { columns: table.columns, rows };
    const about = { start_ns: summary.start_ns, end_ns: summary.end_ns, tracks: area.tracks };
    saveTable({ name: [...props.traceName, 'timeline-area'], format, table: exported, about });
  };
  return (
    <div className="area">
      <div className="area-head wrap">
        <p>
          <strong>{duration(area.end - area.start)}</strong> from {instant(area.start)}, on{' '}
          {plural(summary.tracks.length, 'track')}
        </p>
        <span className="space" />
        <SummarizeButtons summarize={props.summarize} />
        <Button quiet onClick={props.onNarrow}>
          Filter to selection
        </Button>
        <ExportMenu note="All names in the area, in full precision." onExport={save} />
        <Button quiet onClick={props.onClear}>
          Clear selection
        </Button>
      </div>
      <div className="area-body">
        <div style={{ overflow: 'auto' }}>
          <AreaTable
            timeline={timeline}
            table={table}
            sort={sort}
            onSort={props.onSort}
            order={order}
          />
        </div>
        <div className="area-tracks">
          <PlainTable
            className="plain slices-table"
            caption="Busy and idle time of the tracks in the area"
            rows={summary.tracks}
            keyOf={({ track }) => track}
            columns={[
              {
                label: 'Track',
                isHeader: true,
                title: ({ slice_count }) => plural(slice_count, 'slice'),
                cell: ({ track }) => trackLabel(timeline.tracks, track),
              },
              {
                label: 'Busy',
                isNumber: true,
                title: ({ busy_ns }) => quantityExact(busy_ns, 'ns'),
                cell: ({ busy_ns, idle_ns }) => share(busy_ns / Math.max(1, busy_ns + idle_ns)),
              },
              {
                label: 'Idle',
                isNumber: true,
                title: ({ idle_ns }) => quantityExact(idle_ns, 'ns'),
                cell: ({ idle_ns }) => duration(idle_ns),
              },
            ]}
          />
        </div>
      </div>
    </div>
  );
}

export function AreaTab(props: Props): ReactNode {
  const { trace, area } = props;
  const query = useTraceQuery(
    trace,
    'timeline/area',
    {
      start_ns: Math.floor(area?.start ?? 0),
      end_ns: Math.ceil(area?.end ?? 0),
      tracks: area?.tracks.join(','),
    },
    { enabled: area !== null },
  );
  if (!area) {
    return (
      <div className="panel-body">
        <p className="muted">
          No area is selected. Hold Shift and drag over the tracks to summarize an area.
        </p>
        <SummarizeButtons summarize={props.summarize} />
      </div>
    );
  }
  return (
    <Loaded query={query} what="The area">
      {(summary) => <AreaSummary {...props} area={area} summary={summary} />}
    </Loaded>
  );
}
