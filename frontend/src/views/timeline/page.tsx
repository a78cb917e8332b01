import { type ReactNode, useMemo } from 'react';
import { useTraceAnswer } from '../../api/queries';
import type { TimelineNames } from '../../api/types.gen';
import { Empty } from '../../widgets/empty';
import { Loaded } from '../../widgets/loaded';
import { RecordHint } from '../../widgets/record_hint';
import type { PageProps } from '../view';
import { TimelineView } from './timeline';
import type { Timeline } from './wire';
import './timeline.css';

const NO_NAMES: readonly string[] = [];

function Nothing(): ReactNode {
  return (
    <div className="page">
      <Empty icon="timeline" title="There is nothing to lay out in time">
        <p>
          This file holds no event with a time and a duration. A recording of some steps has them:
        </p>
        <RecordHint />
      </Empty>
    </div>
  );
}

/** Every event of a recording, in time. */
export default function Page({ selection }: PageProps): ReactNode {
  const { trace } = selection.span;
  const tracks = useTraceAnswer<Timeline>(trace, 'timeline/tracks');
  const names = useTraceAnswer<TimelineNames>(trace, 'timeline/names');
  const known = useMemo(() => names.data?.names ?? NO_NAMES, [names.data]);
  return (
    <Loaded query={tracks} what="The timeline">
      {(timeline) =>
        timeline.tracks.length === 0 || timeline.end_ns <= timeline.start_ns ? (
          <Nothing />
        ) : (
          <TimelineView key={trace} selection={selection} timeline={timeline} names={known} />
        )
      }
    </Loaded>
  );
}
