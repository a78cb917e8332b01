/** The visible slices of one track as a table, for reading, copying and screen readers. */
import { type ReactNode, useEffect, useState } from 'react';
import { useTraceQuery } from '../../api/queries';
import type { TimelineHits } from '../../api/types.gen';
import { isSameRange, type Range } from '../../canvas/viewport';
import { count, duration, plural } from '../../core/format';
import { Loaded } from '../../widgets/loaded';
import { HitsTable, trackLabel } from './slice_labels';
import type { Viewer } from './viewer';
import type { Hit, Timeline } from './wire';

const MOST_ROWS = 200;

interface Props {
  readonly trace: string;
  readonly timeline: Timeline;
  readonly viewer: Viewer;
  readonly track: number | null;
  readonly onTrack: (track: number) => void;
  readonly selected: number | null;
  readonly onSelect: (hit: Hit) => void;
}

/** The visible time range once it stops moving. */
function useRestedRange(viewer: Viewer): Range {
  const [range, setRange] = useState(viewer.goal);
  useEffect(
    () => viewer.onRest((view) => setRange((last) => (isSameRange(last, view) ? last : view))),
    [viewer],
  );
  return range;
}

const countNote = ({ hits, total }: TimelineHits): string =>
  total > hits.length
    ? `the first ${count(hits.length)} of ${plural(total, 'slice')}`
    : plural(total, 'slice');

export function VisibleTab({ trace, timeline, viewer, track, ...props }: Props): ReactNode {
  const range = useRestedRange(viewer);
  const tracks = timeline.tracks.filter(({ row_count }) => row_count > 0);
  const shown = tracks.find(({ id }) => id === track) ?? tracks[0];
  const query = useTraceQuery(
    trace,
    'timeline/slices',
    {
      track: shown?.id ?? 0,
      start_ns: Math.floor(range.start),
      end_ns: Math.ceil(range.end),
      limit: MOST_ROWS,
    },
    { enabled: shown !== undefined },
  );
  if (!shown) return <p className="panel-body muted">No track has slices.</p>;
  return (
    <div className="panel-body">
      <p>
        <label>
          Track{' '}
          <select value={shown.id} onChange={(event) => props.onTrack(Number(event.target.value))}>
            {tracks.map(({ id }) => (
              <option key={id} value={id}>
                {trackLabel(timeline.tracks, id)}
              </option>
            ))}
          </select>
        </label>{' '}
        <span className="muted">
          {query.data && countNote(query.data)} in the visible {duration(range.end - range.start)}
        </span>
      </p>
      <Loaded query={query} what="The slices">
        {(slices) => (
          <HitsTable
            caption={`Visible slices of ${trackLabel(timeline.tracks, shown.id)}`}
            hits={slices.hits}
            timeline={timeline}
            selected={props.selected}
            onSelect={props.onSelect}
          />
        )}
      </Loaded>
    </div>
  );
}
