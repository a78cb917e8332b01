import type { ReactNode } from 'react';
import type { Overview } from '../../api/types.gen';
import { colourOf } from '../../core/colour';
import { duration, quantityExact, share } from '../../core/format';

/** Why the device idles: each cause with its time per step. */
export function Idle({ overview }: { readonly overview: Overview }): ReactNode {
  const causes = overview.idle
    .filter((cause) => cause.idle_ns > 0)
    .sort((a, b) => b.idle_ns - a.idle_ns);
  const largest = causes[0]?.idle_ns ?? 0;
  if (causes.length === 0) return null;
  return (
    <section className="card">
      <div className="card-head">
        <h2>Why the {overview.device_label} idles</h2>
        <p>{overview.step.count > 0 ? 'per step' : 'over the window'}</p>
      </div>
      <ul className="idle">
        {causes.map((cause) => (
          <li key={cause.id} title={`${quantityExact(cause.idle_ns, 'ns')}\n${cause.help}`}>
            <span className="idle-label">{cause.label}</span>
            <span className="idle-track" aria-hidden="true">
              <span
                style={{
                  width: `${(cause.idle_ns / largest) * 100}%`,
                  background: colourOf(cause.id),
                }}
              />
            </span>
            <span className="idle-value">{duration(cause.idle_ns)}</span>
            <span className="idle-share">{share(cause.share)}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}
