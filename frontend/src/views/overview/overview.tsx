import type { ReactNode } from 'react';
import type { Overview } from '../../api/types.gen';
import { type Part, StackedBar } from '../../charts/stacked_bar';
import { duration, plural } from '../../core/format';
import { HealthSummary } from '../../widgets/health';
import { ViewHeader } from '../../widgets/view_header';
import { Devices } from './devices';
import { Environment } from './environment';
import { Idle } from './idle';
import { Steps } from './steps';
import { TopList } from './top_list';
import './overview.css';

interface Props {
  readonly overview: Overview;
}

function meanParts({ categories, step }: Overview): Part[] {
  return categories.map((category) => ({
    ...category,
    valueNs: step.breakdown_ns[category.id] ?? 0,
  }));
}

function MeanStep({ overview }: Props): ReactNode {
  const { step, window_ns } = overview;
  const hasSteps = step.count > 0;
  const spread = step.count > 1 ? ` ± ${duration(step.standard_deviation_ns)}` : '';
  return (
    <section className="card">
      <div className="card-head">
        <h2>{hasSteps ? 'Mean step' : 'Recorded window'}</h2>
        <p>
          {hasSteps
            ? `${duration(step.mean_ns)}${spread}, ${plural(step.count, 'step')} in ${duration(window_ns)} of the host`
            : `${duration(window_ns)}; no ProfilerStep was recorded`}
        </p>
      </div>
      <StackedBar
        parts={meanParts(overview)}
        totalNs={step.mean_ns}
        whole={hasSteps ? 'mean step' : 'recorded window'}
      />
    </section>
  );
}

function noteOf({ step, window_ns, devices, device_label }: Overview): string {
  const steps = step.count > 0 ? `${plural(step.count, 'step')}, ` : '';
  const on = devices.length > 0 ? `, ${plural(devices.length, device_label)}` : '';
  return `${steps}${duration(window_ns)}${on}`;
}

export function OverviewReport({ overview }: Props): ReactNode {
  const hasDevices = overview.devices.length > 0;
  const operators = (
    <TopList title="Top operators" view="operators" rows={overview.top_operators} />
  );
  return (
    <>
      <ViewHeader title="Overview" note={noteOf(overview)} />
      <div className="overview">
        <p className="overview-verdict">{overview.verdict}</p>
        <div className="overview-main">
          <div className="stack">
            <MeanStep overview={overview} />
            <Steps overview={overview} />
          </div>
          <div className="stack">
            <Devices overview={overview} />
            <Idle overview={overview} />
            {!hasDevices && operators}
          </div>
        </div>
        {hasDevices && (
          <div className="overview-lists">
            {operators}
            <TopList title="Top kernels" view="kernels" rows={overview.top_kernels} />
            <TopList title="Longest gaps" view={null} rows={overview.longest_gaps} />
          </div>
        )}
        <HealthSummary items={overview.health} />
        <Environment overview={overview} />
      </div>
    </>
  );
}
