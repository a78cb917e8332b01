import { type ReactNode, type RefObject, useRef } from 'react';
import type { Overview } from '../../api/types.gen';
import { type Part, StackedBar } from '../../charts/stacked_bar';
import { colourOf } from '../../core/colour';
import { fileName } from '../../core/export';
import { duration, plural } from '../../core/format';
import { ExportMenu, type PictureSource } from '../../widgets/export_menu';
import { HealthSummary } from '../../widgets/health';
import { ViewHeader } from '../../widgets/view_header';
import { Devices } from './devices';
import { Environment } from './environment';
import { Idle } from './idle';
import { recordingOf, saveSteps } from './save';
import { Steps } from './steps';
import { TopList } from './top_list';
import './overview.css';

interface Props {
  readonly overview: Overview;
  /** Its name. */
  readonly run: string;
}

type Chart = RefObject<HTMLDivElement | null>;

interface PartProps extends Pick<Props, 'overview'> {
  /** What is taken along as a picture. */
  readonly chart: Chart;
}

function meanParts({ categories, step }: Overview): Part[] {
  return categories.map((category) => ({
    ...category,
    valueNs: step.breakdown_ns[category.id] ?? 0,
  }));
}

function MeanStep({ overview, chart }: PartProps): ReactNode {
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
      <div ref={chart}>
        <StackedBar
          parts={meanParts(overview)}
          totalNs={step.mean_ns}
          whole={hasSteps ? 'mean step' : 'recorded window'}
        />
      </div>
    </section>
  );
}

function noteOf({ step, window_ns, devices, device_label }: Overview): string {
  const steps = step.count > 0 ? `${plural(step.count, 'step')}, ` : '';
  const on = devices.length > 0 ? `, ${plural(devices.length, device_label)}` : '';
  return `${steps}${duration(window_ns)}${on}`;
}

interface Charts {
  readonly mean: Chart;
  readonly steps: Chart;
  readonly devices: Chart;
}

/** What of the view can be taken along as a picture: what this recording has of it. */
function picturesOf({ overview, run }: Props, charts: Charts): PictureSource[] {
  const { steps, devices, categories, worker, span } = overview;
  const picture = (element: Chart, title: string, word: string): PictureSource => ({
    element,
    title,
    subtitle: `${run}, ${worker}, span ${span}: ${noteOf(overview)}`,
    file: fileName([...recordingOf(run, overview), word], 'png'),
  });
  const shown = categories.filter((_, part) =>
    steps.some((step) => (step.parts_ns[part] ?? 0) > 0),
  );
  const legend = shown.map(({ id, label }) => ({ label, colour: colourOf(id) }));
  return [
    overview.step.count > 0
      ? picture(charts.mean, 'Mean step', 'mean-step')
      : picture(charts.mean, 'Recorded window', 'window'),
    ...(steps.length > 0
      ? [{ ...picture(charts.steps, 'Step by step', 'step-by-step'), legend }]
      : []),
    ...(devices.length > 0 ? [picture(charts.devices, 'Devices', 'devices')] : []),
  ];
}

export function OverviewReport({ overview, run }: Props): ReactNode {
  const hasDevices = overview.devices.length > 0;
  const charts: Charts = { mean: useRef(null), steps: useRef(null), devices: useRef(null) };
  const operators = (
    <TopList title="Top operators" view="operators" rows={overview.top_operators} />
  );
  return (
    <>
      <ViewHeader title="Overview" note={noteOf(overview)}>
        <ExportMenu
          note={
            overview.steps.length > 0
              ? 'CSV and JSON: every step and its parts, in full precision.'
              : 'As it is drawn; no step was recorded.'
          }
          onExport={
            overview.steps.length > 0 ? (format) => saveSteps(run, overview, format) : undefined
          }
          picture={picturesOf({ overview, run }, charts)}
        />
      </ViewHeader>
      <div className="overview">
        <p className="overview-verdict">{overview.verdict}</p>
        <div className="overview-main">
          <div className="stack">
            <MeanStep overview={overview} chart={charts.mean} />
            <Steps overview={overview} chart={charts.steps} />
          </div>
          <div className="stack" ref={charts.devices}>
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
