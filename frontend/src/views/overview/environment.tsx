import type { ReactNode } from 'react';
import type { Overview, RunSetting } from '../../api/types.gen';
import { quantity } from '../../core/format';

type Entry = readonly [name: string, value: string];

/** What the trace says of how it was made, and the settings that the trace handler recorded. */
export function Environment({ overview }: { readonly overview: Overview }): ReactNode {
  return (
    <section className="card environment">
      <div className="card-head">
        <h2>Recorded with</h2>
      </div>
      <Facts entries={[['Dialect', overview.dialect], ...Object.entries(overview.environment)]} />
      {overview.settings.length > 0 ? <Settings settings={overview.settings} /> : <NotRecorded />}
    </section>
  );
}

function Settings({ settings }: { readonly settings: readonly RunSetting[] }): ReactNode {
  const groups = new Map<string, Entry[]>();
  for (const { group, label, value, unit } of settings) {
    const entries = groups.get(group) ?? [];
    entries.push([label, quantity(value, unit)]);
    groups.set(group, entries);
  }
  return [...groups].map(([group, entries]) => (
    <section key={group} aria-label={`Settings: ${group}`}>
      <h3>{group}</h3>
      <Facts entries={entries} />
    </section>
  ));
}

function Facts({ entries }: { readonly entries: readonly Entry[] }): ReactNode {
  return (
    <dl>
      {entries.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}

function NotRecorded(): ReactNode {
  return (
    <p>
      The run’s settings were not recorded:{' '}
      <code>on_trace_ready=stepscope.trace_handler("log/run")</code> records them.
    </p>
  );
}
