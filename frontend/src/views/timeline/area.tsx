/** What happened in an area that was dragged over: by name, and how busy each track was. */

import { type ReactNode, useMemo } from 'react';
import { useTraceAnswer } from '../../api/queries';
import type { TimelineArea } from '../../api/types.gen';
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
import { ExportMenu } from '../../widgets/export_menu';
import { Loaded } from '../../widgets/loaded';
import { saveTable } from '../../widgets/save_table';
import { ariaSort } from '../../widgets/table/aria_sort';
import type { Area } from './settings';
import { categoryLabel, trackLabel } from './slice_words';
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

/** Rows by a column; what has no value comes last. */
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
  const wordsFor = (key: string, value: string): string =>
    key === 'category' ? categoryLabel(timeline.categories, value) : shortName(value);
  const columns = table.columns.filter((column) => !column.hidden);
  const shown = order.slice(0, MOST_ROWS);
  return (
    <div className="panel-body">
      <table className="slices-table">
        <caption className="visually-hidden">What ran in the area, by name</caption>
        <thead>
          <tr>
            {columns.map((column) => (
              <th
                key={column.key}
                scope="col"
                className={isNumeric(column.unit) ? 'number' : ''}
                aria-sort={ariaSort(sort, column.key)}
              >
                <button
                  type="button"
                  title={column.help}
                  onClick={() =>
                    onSort({
                      key: column.key,
                      descending:
                        sort.key === column.key ? !sort.descending : isNumeric(column.unit),
                    })
                  }
                >
                  {column.label}
                  {sort.key === column.key && (sort.descending ? ' ↓' : ' ↑')}
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.map((at) => (
            <tr key={at}>
              {columns.map(({ key, unit }) => {
                const value = cellOf(table, key, at);
                const text =
                  typeof value === 'string' ? wordsFor(key, value) : quantity(value, unit);
                return (
                  <td
                    key={key}
                    className={isNumeric(unit) ? 'number' : unit === 'code' ? 'mono' : ''}
                    title={quantityExact(value, unit)}
                  >
                    {text}
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
      {order.length > MOST_ROWS && (
        <p className="panel-hint">
          The first {count(MOST_ROWS)} of {count(order.length)} names; an export has all.
        </p>
      )}
    </div>
  );
}

function Tracks({
  answer,
  timeline,
}: {
  readonly answer: TimelineArea;
  readonly timeline: Timeline;
}): ReactNode {
  return (
    <div className="area-tracks">
      <table className="slices-table">
        <caption className="visually-hidden">How busy each track was in the area</caption>
        <thead>
          <tr>
            <th scope="col">Track</th>
            <th scope="col" className="number">
              Busy
            </th>
            <th scope="col" className="number">
              Idle
            </th>
          </tr>
        </thead>
        <tbody>
          {answer.tracks.map(({ track, busy_ns, idle_ns, slice_count }) => (
            <tr key={track}>
              <th scope="row" title={plural(slice_count, 'slice')}>
                {trackLabel(timeline.tracks, track)}
              </th>
              <td className="number" title={quantityExact(busy_ns, 'ns')}>
                {share(busy_ns / Math.max(1, busy_ns + idle_ns))}
              </td>
              <td className="number" title={quantityExact(idle_ns, 'ns')}>
                {duration(idle_ns)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

interface Props {
  readonly trace: string;
  readonly recording: readonly string[];
  readonly timeline: Timeline;
  readonly area: Area | null;
  readonly sort: Sort | null;
  readonly onSort: (sort: Sort) => void;
  readonly sums: AreaSums;
  readonly onNarrow: () => void;
  readonly onClear: () => void;
}

/** Ways to an area without dragging; null where there is nothing to sum up. */
export interface AreaSums {
  readonly inSight: () => void;
  readonly selected: (() => void) | null;
}

function SumButtons({ sums }: { readonly sums: AreaSums }): ReactNode {
  return (
    <>
      <button
        type="button"
        className="button quiet"
        title="The time in sight, on the tracks in sight"
        onClick={sums.inSight}
      >
        Sum up what is in sight
      </button>
      <button
        type="button"
        className="button quiet"
        title="What ran on all tracks as long as it did"
        disabled={sums.selected === null}
        onClick={() => sums.selected?.()}
      >
        Sum up the selected slice
      </button>
    </>
  );
}

interface FilledProps extends Props {
  readonly area: Area;
  readonly answer: TimelineArea;
}

function Filled(props: FilledProps): ReactNode {
  const { answer, timeline, area, onNarrow, onClear } = props;
  const { table } = answer;
  const wanted = props.sort;
  const isKnown = table.columns.some((column) => column.key === wanted?.key);
  const sort = wanted && isKnown ? wanted : { key: table.sort, descending: true };
  const { key, descending } = sort;
  const order = useMemo(() => orderOf(table, { key, descending }), [table, key, descending]);
  const save = (format: 'csv' | 'json'): void => {
    const rows = order.map((at) => table.columns.map(({ key }) => cellOf(table, key, at)));
    const exported = { columns: table.columns, rows };
    const about = { start_ns: answer.start_ns, end_ns: answer.end_ns, tracks: area.tracks };
    saveTable({ name: [...props.recording, 'timeline-area'], format, table: exported, about });
  };
  return (
    <div className="area">
      <div className="area-head">
        <p>
          <strong>{duration(area.end - area.start)}</strong> from {instant(area.start)}, on{' '}
          {plural(answer.tracks.length, 'track')}
        </p>
        <span className="space" />
        <SumButtons sums={props.sums} />
        <button type="button" className="button quiet" onClick={onNarrow}>
          Narrow all views to it
        </button>
        <ExportMenu note="All names of the area, in full precision." onExport={save} />
        <button type="button" className="button quiet" onClick={onClear}>
          Let go
        </button>
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
        <Tracks answer={answer} timeline={timeline} />
      </div>
    </div>
  );
}

export function AreaTab(props: Props): ReactNode {
  const { trace, area } = props;
  const query = useTraceAnswer<TimelineArea>(
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
        <p className="panel-hint">
          No area is chosen. Hold Shift and drag over the tracks: what ran there is summed up here.
        </p>
        <SumButtons sums={props.sums} />
      </div>
    );
  }
  return (
    <Loaded query={query} what="The area">
      {(answer) => <Filled {...props} area={area} answer={answer} />}
    </Loaded>
  );
}
