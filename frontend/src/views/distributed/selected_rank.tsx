import type { ReactNode } from 'react';
import type { Distributed } from '../../api/types.gen';
import { useNavigation } from '../../state/navigation';
import { Button } from '../../widgets/button';
import { Goto } from '../../widgets/goto';
import { capital, rankName } from './ranks';

/** The selected rank and step, with links to other views. */
export function SelectedRank({ summary }: { readonly summary: Distributed }): ReactNode {
  const { location, go } = useNavigation();
  const { worker, step } = location;
  const rank = summary.ranks.find((other) => other.worker === worker);
  if (!rank && step === null) return null;
  const name = [rank && rankName(rank), step !== null && `step ${step}`].filter(Boolean).join(', ');
  return (
    <div className="distributed-chosen wrap">
      <strong>{capital(name)}</strong>
      {rank?.host && <span className="muted">{rank.host}</span>}
      {rank?.device_name && <span className="muted">{rank.device_name}</span>}
      {rank && (
        <>
          <Goto to={{ view: 'timeline', worker, step }}>Timeline</Goto>
          <Goto to={{ view: 'overview', worker, step }}>Overview</Goto>
          <Goto to={{ view: 'kernels', worker, step }}>Kernels</Goto>
          <Goto to={{ view: 'advice', worker }}>Advice</Goto>
        </>
      )}
      <Button quiet onClick={() => go({ worker: null, step: null }, 'replace')}>
        Clear selection
      </Button>
    </div>
  );
}
