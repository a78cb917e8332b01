import type { ReactNode } from 'react';
import { useNavigation } from '../../state/navigation';
import { Button } from '../button';
import { Failure } from '../failure';
import { ViewHeader } from '../view_header';

interface Props {
  readonly title: string;
  readonly error: Error;
  readonly retry: () => void;
}

/** A table that failed to load, with a way back to the default grouping. */
export function Refused({ title, error, retry }: Props): ReactNode {
  const { location, go } = useNavigation();
  return (
    <div className="page">
      <ViewHeader title={title}>
        {location.group !== null && (
          <Button onClick={() => go({ group: null }, 'replace')}>Group by name</Button>
        )}
      </ViewHeader>
      <Failure error={error} what={title} retry={retry} />
    </div>
  );
}
