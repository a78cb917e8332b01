import type { ReactNode } from 'react';
import { useAdvice } from '../../api/queries';
import { Loaded } from '../../widgets/loaded';
import type { PageProps } from '../view';
import { Health } from './health';

/** What the recording is worth as a file, and what to record next time. */
export default function Page({ selection }: PageProps): ReactNode {
  return (
    <div className="page">
      <Loaded query={useAdvice(selection.run)} what="Health">
        {(report) => <Health report={report} selection={selection} />}
      </Loaded>
    </div>
  );
}
