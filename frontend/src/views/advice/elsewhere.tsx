import type { ReactNode } from 'react';
import type { Outcome } from '../../api/types.gen';
import { duration } from '../../core/format';
import { SeverityBadge } from '../../widgets/badge';
import { Goto } from '../../widgets/goto';
import { Icon } from '../../widgets/icon';

/** What was found only in other recordings of the run. */
export function Elsewhere({ outcomes }: { readonly outcomes: readonly Outcome[] }): ReactNode {
  if (outcomes.length === 0) return null;
  return (
    <section className="elsewhere" aria-labelledby="elsewhere">
      <h2 id="elsewhere">Found in other recordings of this run</h2>
      <ul>
        {outcomes.map((outcome) => (
          <li key={outcome.rule}>
            <Goto to={{ worker: outcome.worker, span: outcome.span, open: outcome.rule }}>
              <SeverityBadge severity={outcome.severity ?? 'info'} />
              <span className="elsewhere-title">{outcome.title}</span>
              <span className="muted">
                {outcome.worker} span {outcome.span}
              </span>
              {outcome.claim && outcome.claim.net_high_ns > 0 && (
                <span>up to {duration(outcome.claim.net_high_ns)}</span>
              )}
              <Icon name="arrow" size={14} />
            </Goto>
          </li>
        ))}
      </ul>
    </section>
  );
}
