import { type ReactNode, useEffect } from 'react';
import { useAdvice } from '../../api/queries';
import { count } from '../../core/format';
import { reportOf } from '../../core/health';
import { recordingName, recordingsOf } from '../../core/recordings';
import { useNavigation } from '../../state/navigation';
import { withOption } from '../../state/option';
import type { Selection } from '../../state/selection';
import { Loaded, Skeleton } from '../../widgets/loaded';
import { Segmented } from '../../widgets/segmented';
import type { PageProps } from '../view';
import { Advice } from './advice';
import { Job } from './job';

type Of = 'job' | 'rank';

/** From so many recordings on a run is a job, whose ranks nobody looks at one by one. */
const JOB_FROM = 8;

/** A link that names a worker is about it; else a run of many recordings is shown as a whole. */
function useOf({ run }: Selection): readonly [Of, (of: Of) => void] {
  const { location, go } = useNavigation();
  const { about: written } = location.options;
  const recordings = run.workers.reduce((sum, { spans }) => sum + spans.length, 0);
  const isJob = location.worker === null && recordings >= JOB_FROM;
  const usual = isJob ? 'job' : 'rank';
  const of = recordings > 1 && (written === 'job' || written === 'rank') ? written : usual;
  const choose = (next: Of): void =>
    go({ options: withOption(location.options, 'about', next), open: null }, 'replace');
  useEffect(() => {
    // A link that is copied names the worker, which alone would lead to its own advice.
    if (isJob && written === undefined) {
      go({ options: withOption(location.options, 'about', 'job') }, 'replace');
    }
  }, [isJob, written, go, location.options]);
  return [of, choose];
}

/** What to fix first, with proof: in a job of many ranks, or in one recording. */
export default function Page({ selection }: PageProps): ReactNode {
  const { run, worker, span } = selection;
  const query = useAdvice(run, span.trace);
  const [of, choose] = useOf(selection);
  const recordings = recordingsOf(run);
  const own = recordings.find(({ trace }) => trace === span.trace);
  const choice = recordings.length > 1 && (
    <Segmented
      label="Advice on"
      segments={[
        { id: 'job', label: `All ${count(recordings.length)}`, title: 'The run as a whole' },
        {
          id: 'rank',
          label: own ? recordingName(own) : worker.name,
          title: 'The recording that is chosen above',
        },
      ]}
      value={of}
      onChoose={choose}
    />
  );
  return (
    <div className="page">
      <Loaded query={query} what="The advice">
        {(report) => {
          if (of === 'job') return <Job report={report} run={run} choice={choice} />;
          if (query.isPlaceholderData && !reportOf(report, span.trace)) return <Skeleton />;
          return (
            <Advice
              report={report}
              trace={span.trace}
              name={`${worker.name}, span ${span.label}`}
              recordings={recordings}
              choice={choice}
            />
          );
        }}
      </Loaded>
    </div>
  );
}
