/** What is in sight on one track, as a table: for reading, copying and screen readers. */
import { type ReactNode, useEffect, useState } from 'react';
import { useTraceAnswer } from '../../api/queries';
import type { TimelineHits } from '../../api/types.gen';
import { isSameRange, type Range } from '../../canvas/viewport';
import { count, duration, plural } from '../../core/format';
import { Loaded } from '../../widgets/loaded';
import { HitsTable, trackLabel } from './slice_words';
import type { Viewer } from './viewer';
import type { Hit, Timeline, Track } from './wire';

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

/** The part of time that the view has come to rest on. */
function useRested(viewer: Viewer): Range {
  const [range, setRange] = useState(viewer.goal);
  useEffect(
    () => viewer.onRest((view) => setRange((last) => (isSameRange(last, view) ? last : view))),
    [viewer],
  );
  return range;
}

const hasSlices = (track: Track): boolean => track.row_count > 0;

export function ListedTab(props: Props): ReactNode {
  const { trace, timeline, viewer, track, onTrack, selected, onSelect } = props;
  const range = useRested(viewer);
  const tracks = timeline.tracks.filter(hasSlices);
  const chosen = tracks.find((each) => each.id === track) ?? tracks[0];
  const query = useTraceAnswer<TimelineHits>(
    trace,
    'timeline/slices',
    {
      track: chosen?.id,
      start_ns: Math.floor(range.start),
      end_ns: Math.ceil(range.end),
      limit: MOST_ROWS,
    },
    { enabled: chosen !== undefined },
  );
  if (!chosen) return <p className="panel-body panel-hint">No track has slices.</p>;
  const label = trackLabel(timeline.tracks, chosen.id);
  return (
    <div className="panel-body">
      <p>
        <label>
          Track{' '}
          <select value={chosen.id} onChange={(event) => onTrack(Number(event.target.value))}>
            {tracks.map((each) => (
              <option key={each.id} value={each.id}>
                {trackLabel(timeline.tracks, each.id)}
              </option>
            ))}
          </select>
        </label>{' '}
        <span className="panel-hint">
          {query.data &&
            (query.data.total > query.data.hits.length
              ? `the first ${count(query.data.hits.length)} of ${plural(query.data.total, 'slice')}`
              : plural(query.data.total, 'slice'))}{' '}
          in the {duration(range.end - range.start)} in sight
        </span>
      </p>
      <Loaded query={query} what="The slices">
        {(answer) => (
          <HitsTable
            caption={`Slices of ${label} in sight`}
            hits={answer.hits}
            tracks={timeline.tracks}
            categories={timeline.categories}
            selected={selected}
            onSelect={onSelect}
          />
        )}
      </Loaded>
    </div>
  );
}
