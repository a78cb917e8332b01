import { type ReactNode, useMemo } from 'react';
import { useTraceQuery } from '../../api/queries';
import { Empty } from '../../widgets/empty';
import { Loaded } from '../../widgets/loaded';
import { RecordHint } from '../../widgets/record_hint';
import type { PageProps } from '../view';
import { TimelineView } from './timeline';
import './timeline.css';

const NO_NAMES: readonly string[] = [];

function NoEvents(): ReactNode {
  return (
    <div className="page">
      <Empty icon="timeline" title="No events to show">
        <p>
          This trace contains no event with a start and a duration. Record some steps of a script
          without changing it:
        </p>
        <RecordHint />
      </Empty>
    </div>
  );
}

export default function Page({ selection }: PageProps): ReactNode {
  const { trace } = selection.span;
  const tracks = useTraceQuery(trace, 'timeline/tracks');
  const names = useTraceQuery(trace, 'timeline/names');
  const nameList = useMemo(() => names.data?.names ?? NO_NAMES, [names.data]);
  return (
    <Loaded query={tracks} what="The timeline">
      {(timeline) =>
        timeline.tracks.length === 0 || timeline.end_ns <= timeline.start_ns ? (
          <NoEvents />
        ) : (
          <TimelineView key={trace} selection={selection} timeline={timeline} names={nameList} />
        )
      }
    </Loaded>
  );
}
