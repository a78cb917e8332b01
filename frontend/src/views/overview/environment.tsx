import type { ReactNode } from 'react';
import type { Overview } from '../../api/types.gen';
import { quantity } from '../../core/format';
import { Card } from '../../widgets/card';
import { Facts } from '../../widgets/facts';

/** The environment of the trace, and the settings that the trace handler recorded. */
export function Environment({ overview }: { readonly overview: Overview }): ReactNode {
  const { dialect, environment, settings } = overview;
  const groups = [...new Set(settings.map(({ group }) => group))];
  return (
    <Card className="environment" title="Recorded with">
      <Facts facts={[['Dialect', dialect], ...Object.entries(environment)]} />
      {groups.map((group) => (
        <section key={group} aria-label={`Settings: ${group}`}>
          <h3>{group}</h3>
          <Facts
            facts={settings
              .filter((setting) => setting.group === group)
              .map(({ label, value, unit }) => [label, quantity(value, unit)])}
          />
        </section>
      ))}
      {settings.length === 0 && (
        <p>
          The settings of the run were not recorded:{' '}
          <code>on_trace_ready=stepscope.trace_handler("log/run")</code> records them.
        </p>
      )}
    </Card>
  );
}
