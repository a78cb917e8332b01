/** The summary of an area: the time of each name, or how busy each track was. */
import { type ReactNode, useMemo } from 'react';
import { useTraceQuery } from '../../api/queries';
import type { Table, TimelineArea } from '../../api/types.gen';
import { column, tableOf } from '../../core/columns';
import { duration, instant, plural } from '../../core/format';
import type { Sort } from '../../state/location';
import { Button } from '../../widgets/button';
import { ExportMenu } from '../../widgets/export_menu';
import { Loaded } from '../../widgets/loaded';
import { saveTable } from '../../widgets/save_table';
import { useSegments } from '../../widgets/segmented';
import type { Look } from '../../widgets/table/cell';
import { cellOf, orderedRows } from '../../widgets/table/rows';
import { SortedGrid } from '../../widgets/table/sorted_grid';
import type { Area } from './settings';
import { categoryLabel, trackLabel } from './slice_labels';
import type { Timeline } from './wire';

/** Categories by their labels. */
const lookOf = (table: Table, { categories }: Timeline): Look => ({
  cell: ({ key }, at) =>
    key === 'category'
      ? { text: categoryLabel(categories, String(cellOf(table, key, at))) }
      : undefined,
});

const ROWS = [
  { id: 'name', label: 'By name', title: 'The time of the slices of each name' },
  { id: 'track', label: 'By track', title: 'Busy and idle time of each track' },
] as const;
const LABELS = {
  name: 'Time in the area by name',
  track: 'Busy and idle time of the tracks in the area',
} as const;
const TRACK_COLUMNS = [
  column('track', 'Track', 'text'),
  column('slice_count', 'Count', 'count', 'Number of slices in the area, wholly or in part'),
  column('busy_ns', 'Busy', 'ns', 'Time in which any slice of the track ran'),
  column('share', 'Busy share', 'share', 'Fraction of the time range in which any slice ran'),
  column('idle_ns', 'Idle', 'ns', 'The rest of the time range'),
];

const namesTable = ({ table }: TimelineArea): Table => ({
  ...table,
  columns: table.columns.map((column) =>
    column.key === 'slice_count' ? { ...column, label: 'Count' } : column,
  ),
});

/** The tracks of an area, busiest first. */
function tracksTable({ tracks }: TimelineArea, timeline: Timeline): Table {
  const rows = tracks.map(({ track, slice_count, busy_ns, idle_ns }) => ({
    track: trackLabel(timeline.tracks, track),
    slice_count,
    busy_ns,
    share: busy_ns / Math.max(1, busy_ns + idle_ns),
    idle_ns,
  }));
  return { ...tableOf(TRACK_COLUMNS, rows), sort: 'busy_ns' };
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
  readonly onSort: (sort: Sort | null) => void;
  readonly summarize: Summarize;
  readonly onAllTracks: () => void;
  readonly onNarrow: () => void;
  readonly onClear: () => void;
}

interface SummaryProps extends Props {
  readonly area: Area;
  readonly summary: TimelineArea;
}

function AreaSummary(props: SummaryProps): ReactNode {
  const { summary, timeline, area, sort: requested } = props;
  const [by, segments] = useSegments('area-by', { label: 'Rows of the table', segments: ROWS });
  const table = useMemo(
    () => (by === 'name' ? namesTable(summary) : tracksTable(summary, timeline)),
    [by, summary, timeline],
  );
  const isColumn = table.columns.some((column) => column.key === requested?.key);
  const sort = requested && isColumn ? requested : { key: table.sort, descending: true };
  const look = useMemo(() => lookOf(table, timeline), [table, timeline]);
  const save = (format: 'csv' | 'json'): void => {
    const order = orderedRows(table, sort.key, sort.descending);
    const rows = Array.from(order, (at) =>
      table.columns.map((column) => cellOf(table, column.key, at)),
    );
    const exported = { columns: table.columns, rows };
    const about = { start_ns: summary.start_ns, end_ns: summary.end_ns, tracks: area.tracks };
    saveTable({
      name: [...props.traceName, `timeline-area-by-${by}`],
      format,
      table: exported,
      about,
    });
  };
  return (
    <div className="area">
      <div className="area-head wrap">
        <p>
          <strong>{duration(area.end - area.start)}</strong> from {instant(area.start)}, on{' '}
          {plural(summary.tracks.length, 'track')}
        </p>
        {segments}
        <span className="space" />
        {area.tracks.length > 0 && (
          <Button quiet title="The same time range on all tracks" onClick={props.onAllTracks}>
            All tracks
          </Button>
        )}
        <Button quiet title="Filter all views to this time range" onClick={props.onNarrow}>
          Filter to selection
        </Button>
        <ExportMenu note="All rows of this table, in full precision." onExport={save} />
        <Button quiet onClick={props.onClear}>
          Clear selection
        </Button>
      </div>
      <SortedGrid
        table={table}
        name={`timeline-area-${by}`}
        label={LABELS[by]}
        sort={sort}
        look={look}
        isFitted={false}
        onSort={props.onSort}
      />
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
          No area is selected. Drag over the tracks to sum up the slices in a time range.
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
