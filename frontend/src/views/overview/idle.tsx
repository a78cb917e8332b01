import type { ReactNode } from 'react';
import type { IdleCause, Overview } from '../../api/types.gen';
import { colourOf } from '../../core/colour';
import { duration, plural, quantityExact, share } from '../../core/format';
import { timelineLocation } from '../../state/timeline_location';
import { Card } from '../../widgets/card';
import { Goto } from '../../widgets/goto';

function titleOf({ idle_ns, help, gap_count, start_ns, end_ns }: IdleCause): string {
  const longest =
    typeof start_ns === 'number' && typeof end_ns === 'number'
      ? `\n${plural(gap_count, 'gap')} in the window, the longest ${duration(end_ns - start_ns)}: click to show it in the timeline`
      : '';
  return `${quantityExact(idle_ns, 'ns')}\n${help}${longest}`;
}

/** The idle time of the device by cause. */
export function Idle({ overview }: { readonly overview: Overview }): ReactNode {
  const causes = overview.idle
    .filter((cause) => cause.idle_ns > 0)
    .sort((a, b) => b.idle_ns - a.idle_ns);
  const largest = causes[0]?.idle_ns ?? 0;
  if (causes.length === 0) return null;
  return (
    <Card
      title={`Idle causes of the ${overview.device_label}`}
      note={overview.step.count > 0 ? 'per step' : 'over the window'}
    >
      <ul className="idle">
        {causes.map((cause) => (
          <li key={cause.id} title={titleOf(cause)}>
            <span className="muted">
              {typeof cause.start_ns === 'number' && typeof cause.end_ns === 'number' ? (
                <Goto to={timelineLocation(cause.start_ns, cause.end_ns, cause.event)}>
                  {cause.label}
                </Goto>
              ) : (
                cause.label
              )}
            </span>
            <span className="track" aria-hidden="true">
              <span
                style={{
                  width: `${(cause.idle_ns / largest) * 100}%`,
                  background: colourOf(cause.id),
                }}
              />
            </span>
            <span className="number strong">{duration(cause.idle_ns)}</span>
            <span className="number muted">{share(cause.share)}</span>
          </li>
        ))}
      </ul>
    </Card>
  );
}
