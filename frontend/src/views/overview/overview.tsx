import { type ReactNode, type RefObject, useRef } from 'react';
import type { Overview } from '../../api/types.gen';
import { type Part, StackedBar } from '../../charts/stacked_bar';
import { colourOf } from '../../core/colour';
import { column } from '../../core/columns';
import { type ExportTable, fileName } from '../../core/export';
import { duration, plural } from '../../core/format';
import { Card } from '../../widgets/card';
import { ExportMenu, type PictureSource } from '../../widgets/export_menu';
import { HealthSummary } from '../../widgets/health';
import { TableExport } from '../../widgets/table_export';
import { ViewHeader } from '../../widgets/view_header';
import { Devices } from './devices';
import { Environment } from './environment';
import { Idle } from './idle';
import { Serving } from './serving';
import { Steps } from './steps';
import { TopList } from './top_list';
import './overview.css';

interface Props {
  readonly overview: Overview;
  readonly run: string;
  /** The step or time range that the figures are filtered to; empty for the whole trace. */
  readonly filter?: string;
}

type Chart = RefObject<HTMLDivElement | null>;

interface PartProps extends Pick<Props, 'overview' | 'filter'> {
  /** Receives the chart, for exports. */
  readonly chart: Chart;
}

/** One row per step; its parts sum to its duration. */
function stepTable({ steps, categories }: Overview): ExportTable {
  return {
    columns: [
      column('number', 'step', 'count', 'The number in `ProfilerStep#N`.'),
      column('name', 'name', 'text'),
      column('start', 'start', 'ns', 'From the first event of the trace.'),
      column(
        'duration',
        'duration',
        'ns',
        'Until the next step begins; of the last, until its device work ends.',
      ),
      column('host_start', 'host start', 'ns', 'Start on the host.'),
      column('host_end', 'host end', 'ns', 'End on the host.'),
      ...categories.map(({ id, label, help }) => column(id, label, 'ns', help)),
    ],
    rows: steps.map((step) => [
      step.number,
      step.name,
      step.start_ns,
      step.duration_ns,
      step.host_start_ns,
      step.host_end_ns,
      ...categories.map((_, part) => step.parts_ns[part] ?? null),
    ]),
  };
}

/** The names of the trace and of the filter, for files. */
const traceNames = ({ overview, run, filter = '' }: Props): readonly string[] =>
  [run, overview.worker, overview.span, filter].filter((name) => name !== '');

function meanParts({ categories, step }: Overview): Part[] {
  return categories.map((category) => ({
    ...category,
    valueNs: step.breakdown_ns[category.id] ?? 0,
  }));
}

/** What the parts sum to: the mean step, the selected step, or a time without whole steps. */
function wholeOf({ step }: Overview, filter = ''): string {
  if (step.count === 0) return filter === '' ? 'Recorded window' : 'Selected time';
  if (filter === '') return 'Mean step';
  return step.count === 1 ? 'Selected step' : 'Mean of the selected steps';
}

function MeanStep({ overview, filter, chart }: PartProps): ReactNode {
  const { step, window_ns } = overview;
  const hasSteps = step.count > 0;
  const title = wholeOf(overview, filter);
  const spread = step.count > 1 ? ` ± ${duration(step.standard_deviation_ns)}` : '';
  return (
    <Card
      title={title}
      note={
        hasSteps
          ? `${duration(step.mean_ns)}${spread}, ${plural(step.count, 'step')} in ${duration(window_ns)}`
          : `${duration(window_ns)}; ${filter === '' ? 'no ProfilerStep was recorded' : 'no whole step'}`
      }
    >
      <div ref={chart}>
        <StackedBar
          parts={meanParts(overview)}
          totalNs={step.mean_ns}
          whole={title.toLowerCase()}
        />
      </div>
    </Card>
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

/** The charts to export, as far as the trace has data. */
function picturesOf(props: Props, charts: Charts): PictureSource[] {
  const { overview, run, filter } = props;
  const { steps, devices, categories, worker, span } = overview;
  const picture = (element: Chart, title: string, word: string): PictureSource => ({
    element,
    title,
    subtitle: `${run}, ${worker}, span ${span}: ${noteOf(overview)}${filter ? `; ${filter}` : ''}`,
    file: fileName([...traceNames(props), word], 'png'),
  });
  const shown = categories.filter((_, part) =>
    steps.some((step) => (step.parts_ns[part] ?? 0) > 0),
  );
  const legend = shown.map(({ id, label }) => ({ label, colour: colourOf(id) }));
  return [
    picture(
      charts.mean,
      wholeOf(overview, filter),
      overview.step.count > 0 ? 'mean-step' : 'window',
    ),
    ...(steps.length > 0 ? [{ ...picture(charts.steps, 'Steps', 'step-by-step'), legend }] : []),
    ...(devices.length > 0 ? [picture(charts.devices, 'Devices', 'devices')] : []),
  ];
}

export function OverviewReport(props: Props): ReactNode {
  const { overview, run, filter } = props;
  const { steps, worker, span, synthetic, verdict, window_ns, step } = overview;
  const hasDevices = overview.devices.length > 0;
  const charts: Charts = { mean: useRef(null), steps: useRef(null), devices: useRef(null) };
  const pictures = picturesOf(props, charts);
  const ofWindow = step.count > 0 ? '% of all steps' : '% of the window';
  const operators = (
    <TopList
      title="Top operators"
      note={`${hasDevices ? overview.device_label : 'host'} self time, ${ofWindow}`}
      view="operators"
      rows={overview.top_operators}
    />
  );
  return (
    <>
      <ViewHeader title="Overview" note={noteOf(overview)}>
        {steps.length > 0 ? (
          <TableExport
            note="CSV and JSON: all steps with their parts, in full precision."
            name={[...traceNames(props), 'steps']}
            table={() => stepTable(overview)}
            about={{ run, filter, worker, span, synthetic, verdict, window_ns, mean_step: step }}
            picture={pictures}
          />
        ) : (
          <ExportMenu note="The chart as shown; no steps were recorded." picture={pictures} />
        )}
      </ViewHeader>
      <div className="stack">
        <p className="overview-verdict headline">{verdict}</p>
        <div className="overview-main">
          <div className="stack">
            <MeanStep overview={overview} filter={filter} chart={charts.mean} />
            <Serving overview={overview} />
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
            <TopList
              title="Top kernels"
              note={`total time, ${ofWindow}`}
              view="kernels"
              rows={overview.top_kernels}
            />
            <TopList
              title="Longest gaps"
              note={step.count > 0 ? '% of the mean step' : ofWindow}
              view={null}
              rows={overview.longest_gaps}
            />
          </div>
        )}
        <HealthSummary items={overview.health} />
        <Environment overview={overview} />
      </div>
    </>
  );
}
