import type { ReactNode } from 'react';
import { useAdvice } from '../../api/queries';
import { Loaded } from '../../widgets/loaded';
import type { PageProps } from '../view';
import { Advice } from './advice';

/** What to fix first, with proof. */
export default function Page({ selection }: PageProps): ReactNode {
  const { run, worker, span } = selection;
  return (
    <div className="page">
      <Loaded query={useAdvice(run)} what="The advice">
        {(report) => (
          <Advice report={report} trace={span.trace} name={`${worker.name}, span ${span.label}`} />
        )}
      </Loaded>
    </div>
  );
}
