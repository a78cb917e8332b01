import type { ReactNode } from 'react';
import type { Overview } from '../../api/types.gen';

/** What the trace says of how it was made. */
export function Environment({ overview }: { readonly overview: Overview }): ReactNode {
  const entries = [['Dialect', overview.dialect], ...Object.entries(overview.environment)];
  return (
    <section className="card environment">
      <div className="card-head">
        <h2>Recorded with</h2>
      </div>
      <dl>
        {entries.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
