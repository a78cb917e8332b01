import type { ReactNode } from 'react';
import { useNavigation } from '../../state/navigation';
import { Failure } from '../failure';
import { ViewHeader } from '../view_header';

interface Props {
  readonly title: string;
  readonly error: Error;
  readonly retry: () => void;
}

/** In place of a table that cannot be had: why, and back to the grouping that can. */
export function Refused({ title, error, retry }: Props): ReactNode {
  const { location, go } = useNavigation();
  return (
    <div className="page">
      <ViewHeader title={title}>
        {location.group !== null && (
          <button type="button" className="button" onClick={() => go({ group: null }, 'replace')}>
            Group by name
          </button>
        )}
      </ViewHeader>
      <Failure error={error} what={title} retry={retry} />
    </div>
  );
}
