import type { ReactNode } from 'react';
import { useAdvice } from '../../api/queries';
import { reportOf } from '../../core/health';
import { Loaded, Skeleton } from '../../widgets/loaded';
import type { PageProps } from '../view';
import { Health } from './health';

export default function Page({ selection }: PageProps): ReactNode {
  const query = useAdvice(selection.run, selection.span.trace);
  return (
    <div className="page">
      <Loaded query={query} what="Health">
        {(report) =>
          query.isPlaceholderData && !reportOf(report, selection.span.trace) ? (
            <Skeleton />
          ) : (
            <Health report={report} selection={selection} />
          )
        }
      </Loaded>
    </div>
  );
}
