import type { ReactNode } from 'react';
import type { Distributed } from '../../api/types.gen';
import { useNavigation } from '../../state/navigation';
import { Goto } from '../../widgets/goto';
import { capital, rankName } from './names';

/** What is chosen, and where more of it is to be seen. */
export function Chosen({ summary }: { readonly summary: Distributed }): ReactNode {
  const { location, go } = useNavigation();
  const { worker, step } = location;
  const rank = summary.ranks.find((each) => each.worker === worker);
  if (!rank && step === null) return null;
  const words = [rank && rankName(rank), step !== null && `step ${step}`]
    .filter(Boolean)
    .join(', ');
  return (
    <div className="distributed-chosen">
      <strong>{capital(words)}</strong>
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
      <button
        type="button"
        className="button quiet"
        onClick={() => go({ worker: null, step: null }, 'replace')}
      >
        Let go
      </button>
    </div>
  );
}
