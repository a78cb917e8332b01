import { type ReactNode, useEffect } from 'react';
import { useAdvice } from '../../api/queries';
import { count } from '../../core/format';
import { reportOf } from '../../core/health';
import { rankLabel, traceRefsOf } from '../../core/traces';
import { useNavigation } from '../../state/navigation';
import { withOptions } from '../../state/option';
import type { Selection } from '../../state/selection';
import { Loaded, Skeleton } from '../../widgets/loaded';
import { Segmented } from '../../widgets/segmented';
import type { PageProps } from '../view';
import { Advice } from './advice';
import { Job } from './job';

type Scope = 'job' | 'rank';

/** Least number of traces of a job, which is shown as a whole. */
const JOB_FROM = 8;

/** The whole job, or the rank that a link names. */
function useScope({ run }: Selection): readonly [Scope, (scope: Scope) => void] {
  const { location, go } = useNavigation();
  const { about: requested } = location.options;
  const traceCount = run.workers.reduce((sum, { spans }) => sum + spans.length, 0);
  const isJob = location.worker === null && traceCount >= JOB_FROM;
  const defaultScope = isJob ? 'job' : 'rank';
  const scope =
    traceCount > 1 && (requested === 'job' || requested === 'rank') ? requested : defaultScope;
  const choose = (next: Scope): void =>
    go({ options: withOptions(location.options, { about: next }), open: null }, 'replace');
  useEffect(() => {
    // A copied link names the worker, which alone would lead to the advice on that rank.
    if (isJob && requested === undefined) {
      go({ options: withOptions(location.options, { about: 'job' }) }, 'replace');
    }
  }, [isJob, requested, go, location.options]);
  return [scope, choose];
}

export default function Page({ selection }: PageProps): ReactNode {
  const { run, worker, span } = selection;
  const query = useAdvice(run, span.trace);
  const [scope, choose] = useScope(selection);
  const traceRefs = traceRefsOf(run);
  const traceRef = traceRefs.find(({ trace }) => trace === span.trace);
  const choice = traceRefs.length > 1 && (
    <Segmented
      label="Advice on"
      segments={[
        { id: 'job', label: `All ${count(traceRefs.length)}`, title: 'The whole run' },
        {
          id: 'rank',
          label: traceRef ? rankLabel(traceRef) : worker.name,
          title: 'The trace selected above',
        },
      ]}
      value={scope}
      onChoose={choose}
    />
  );
  return (
    <div className="page">
      <Loaded query={query} what="The advice">
        {(report) => {
          if (scope === 'job') return <Job report={report} run={run} choice={choice} />;
          if (query.isPlaceholderData && !reportOf(report, span.trace)) return <Skeleton />;
          return (
            <Advice
              report={report}
              trace={span.trace}
              name={`${worker.name}, span ${span.label}`}
              traceRefs={traceRefs}
              choice={choice}
            />
          );
        }}
      </Loaded>
    </div>
  );
}
