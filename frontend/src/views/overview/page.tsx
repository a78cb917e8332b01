import type { ReactNode } from 'react';
import { useOverview } from '../../api/queries';
import { Loaded } from '../../widgets/loaded';
import type { PageProps } from '../view';
import { OverviewReport } from './overview';

export default function Page({ selection }: PageProps): ReactNode {
  return (
    <div className="page">
      <Loaded query={useOverview(selection.span.trace)} what="The overview">
        {(overview) => <OverviewReport overview={overview} run={selection.run.name} />}
      </Loaded>
    </div>
  );
}
