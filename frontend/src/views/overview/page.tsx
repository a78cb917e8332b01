import type { ReactNode } from 'react';
import { useNarrowing, useOverview, useTraceQuery } from '../../api/queries';
import { Loaded } from '../../widgets/loaded';
import type { PageProps } from '../view';
import { OverviewReport } from './overview';

export default function Page({ selection }: PageProps): ReactNode {
  const { trace } = selection.span;
  const narrowing = useNarrowing(trace);
  const { start_ns, end_ns, label = '' } = narrowing ?? {};
  const isNarrowed = Boolean(narrowing);
  const whole = useOverview(trace);
  const part = useTraceQuery(trace, 'overview', { start_ns, end_ns }, { enabled: isNarrowed });
  return (
    <div className="page">
      <Loaded query={isNarrowed ? part : whole} what="The overview">
        {(overview) => (
          <OverviewReport overview={overview} run={selection.run.name} filter={label} />
        )}
      </Loaded>
    </div>
  );
}
