import type { ReactNode } from 'react';
import type { WorkerReport } from '../../api/types.gen';
import { StackedBar } from '../../charts/stacked_bar';
import { categoryWords } from '../../core/categories';
import { count, duration, plural, quantityExact, share } from '../../core/format';

function Facts({ worker }: { readonly worker: WorkerReport }): ReactNode {
  const { step, devices, events } = worker;
  const hasSteps = step.count > 0;
  return (
    <dl className="facts">
      <div title={quantityExact(step.mean_ns, 'ns')}>
        <dt>{hasSteps ? 'Mean step' : 'Window'}</dt>
        <dd>
          {duration(step.mean_ns)}
          {step.count > 1 && <small> ± {duration(step.standard_deviation_ns)}</small>}
        </dd>
      </div>
      <div>
        <dt>Steps</dt>
        <dd>{hasSteps ? count(step.count) : <small>none recorded</small>}</dd>
      </div>
      {devices.slice(0, 2).map((device) => (
        <div key={device.id} title={device.name}>
          <dt>{device.name}</dt>
          <dd>
            {share(device.busy_share)} <small>busy</small>
          </dd>
        </div>
      ))}
      {devices.length > 2 && (
        <div>
          <dt>Others</dt>
          <dd>
            <small>{plural(devices.length - 2, 'more device')}</small>
          </dd>
        </div>
      )}
      <div>
        <dt>Events</dt>
        <dd>{count(events)}</dd>
      </div>
    </dl>
  );
}

/** The sentence that says it all, and the mean step as one bar. */
export function Verdict({ worker }: { readonly worker: WorkerReport }): ReactNode {
  const { step } = worker;
  const parts = Object.entries(step.breakdown_ns).map(([id, valueNs]) => ({
    id,
    ...categoryWords(id),
    valueNs,
  }));
  return (
    <section className="card verdict" aria-label="Verdict">
      <div className="verdict-head">
        <p className="verdict-words">{worker.verdict}</p>
        <Facts worker={worker} />
      </div>
      <StackedBar
        parts={parts}
        totalNs={step.mean_ns}
        whole={step.count > 0 ? 'mean step' : 'recorded window'}
      />
    </section>
  );
}
