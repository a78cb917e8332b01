/** The summary of an area: time by name, and how busy each track was. */
import { type ReactNode, useMemo } from 'react';
import { useTraceQuery } from '../../api/queries';
import type { TimelineArea } from '../../api/types.gen';
import { duration, instant, plural, quantityExact, share } from '../../core/format';
import type { Sort } from '../../state/location';
import { Button } from '../../widgets/button';
import { ExportMenu } from '../../widgets/export_menu';
import { Loaded } from '../../widgets/loaded';
import { PlainTable } from '../../widgets/plain_table';
import { saveTable } from '../../widgets/save_table';
import type { Look } from '../../widgets/table/cell';
import { cellOf, orderedRows } from '../../widgets/table/rows';
import { SortedGrid } from '../../widgets/table/sorted_grid';
import type { Area } from './settings';
import { categoryLabel, trackLabel } from './slice_labels';
import type { Timeline } from './wire';

/** Categories by their labels. */
const lookOf = ({ table }: TimelineArea, { categories }: Timeline): Look => ({
  cell: ({ key }, at) =>
    key === 'category'
      ? { text: categoryLabel(categories, String(cellOf(table, key, at))) }
      : undefined,
});

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
  readonly onSort: (sort: Sort | null) => void;
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
  const look = useMemo(() => lookOf(summary, timeline), [summary, timeline]);
  const save = (format: 'csv' | 'json'): void => {
    const order = orderedRows(table, sort.key, sort.descending);
    const rows = Array.from(order, (at) =>
      table.columns.map((column) => cellOf(table, column.key, at)),
    );
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
        <SortedGrid
          table={table}
          name="timeline-area"
          label="Time in the area by name"
          sort={sort}
          look={look}
          onSort={props.onSort}
        />
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
