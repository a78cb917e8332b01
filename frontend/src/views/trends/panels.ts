/** The charts of the trends, and their table. Pure. */
import type { TrendPoint, Trends } from '../../api/types.gen';
import type { Series, Steps } from '../../charts/small_multiple';
import { colourOf } from '../../core/colour';
import { column } from '../../core/columns';
import type { ExportTable } from '../../core/export';
import { bytes, count, duration, relativeChange, share, tick } from '../../core/format';
import { nameOf, type Scope } from './points';

export interface Panel {
  readonly id: string;
  readonly title: string;
  readonly help: string;
  readonly series: readonly Series[];
  readonly tickY: (value: number) => string;
  readonly format: (value: number) => string;
  readonly steps?: Steps;
  /** Least end of the axis. */
  readonly mostY?: number;
  /** The text without data. */
  readonly none: string;
}

type Values = readonly (number | null)[];

const figure = (points: readonly TrendPoint[], name: string): Values =>
  points.map((point) => point.figures[name] ?? null);

/** Times of the whole step; the others are parts of it. */
const OF_STEPS: ReadonlySet<string> = new Set([
  'step_ns',
  'median_step_ns',
  'longest_step_ns',
  'step_deviation_ns',
]);

const categoryOf = (name: string): string => name.replace(/_ns$/, '');

/** The categories of step time that any point has. */
export function categoriesOf({ figures, points }: Trends): string[] {
  return figures
    .filter(({ name, unit }) => unit === 'ns' && !OF_STEPS.has(name))
    .filter(({ name }) => points.some((point) => (point.figures[name] ?? 0) > 0))
    .map(({ name }) => categoryOf(name));
}

/** The mean step plus or minus one deviation. */
function deviated(points: readonly TrendPoint[], by: 1 | -1): Values {
  return points.map(({ figures }) => {
    const [mean, deviation] = [figures.step_ns ?? null, figures.step_deviation_ns ?? null];
    return mean === null || deviation === null ? null : Math.max(0, mean + by * deviation);
  });
}

const isOfMany = ({ traces }: TrendPoint): boolean => traces.length > 1;

/** The band from the fastest to the slowest worker, for points over several workers. */
function workersBand(points: readonly TrendPoint[]): Series[] {
  if (!points.some(isOfMany)) return [];
  return [
    {
      kind: 'band',
      id: 'workers',
      label: 'fastest – slowest worker',
      colour: colourOf('communication'),
      low: points.map((point) => (isOfMany(point) ? point.least_step_ns : null)),
      high: points.map((point) => (isOfMany(point) ? point.most_step_ns : null)),
    },
  ];
}

function stepPanel(points: readonly TrendPoint[]): Panel {
  const line = (id: string, name: string, colour: string, isDashed: boolean): Series => ({
    kind: 'line',
    id,
    label: id,
    colour: colourOf(colour),
    values: figure(points, name),
    isDashed,
  });
  return {
    id: 'step',
    title: 'Step time',
    help: 'Mean step, including its device work; the band is one standard deviation of the steps.',
    series: [
      {
        kind: 'band',
        id: 'deviation',
        label: '± deviation',
        colour: colourOf('kernel'),
        low: deviated(points, -1),
        high: deviated(points, 1),
      },
      ...workersBand(points),
      line('median', 'median_step_ns', 'memcpy', true),
      line('mean', 'step_ns', 'kernel', false),
    ],
    tickY: tick,
    format: duration,
    none: 'No steps were recorded. Call profiler.step() in the training loop.',
  };
}

function partsPanel(trends: Trends): Panel {
  return {
    id: 'parts',
    title: 'Parts of the step',
    help: 'Mean step by category; the categories sum to it.',
    series: categoriesOf(trends).map((id) => ({
      kind: 'column',
      id,
      label: trends.figures.find(({ name }) => name === `${id}_ns`)?.label ?? id,
      colour: colourOf(id),
      values: figure(trends.points, `${id}_ns`),
    })),
    tickY: tick,
    format: duration,
    none: 'No steps were recorded. Call profiler.step() in the training loop.',
  };
}

const SEVERITIES = [
  ['critical', 'var(--bad)'],
  ['warning', 'var(--warn-line)'],
  ['info', 'var(--line-strong)'],
] as const;

function findingsPanel(points: readonly TrendPoint[]): Panel {
  return {
    id: 'findings',
    title: 'Findings',
    help: 'Findings by severity, including symptoms and notes; one of several workers counts once.',
    series: SEVERITIES.map(([severity, colour]) => ({
      kind: 'column',
      id: severity,
      label: severity,
      colour,
      values: points.map((point) => point.severity_counts[severity] ?? 0),
    })),
    tickY: count,
    format: count,
    steps: 'counts',
    mostY: 3,
    none: '',
  };
}

interface OneLine extends Omit<Panel, 'series' | 'tickY'> {
  readonly figure: string;
  readonly colour: string;
}

const LINES: readonly OneLine[] = [
  {
    id: 'busy',
    title: 'Device busy',
    help: 'Fraction of the window in which the busiest device worked.',
    figure: 'busy_share',
    colour: colourOf('kernel'),
    format: share,
    mostY: 1,
    none: 'No device work was recorded.',
  },
  {
    id: 'recoverable',
    title: 'Potential saving',
    help: 'Upper bound of the saving of all findings, as a fraction of the step (or window).',
    figure: 'recoverable_share',
    colour: colourOf('dataloader'),
    format: share,
    mostY: 0.1,
    none: '',
  },
  {
    id: 'memory',
    title: 'Memory peak',
    help: 'Peak memory of one device: reserved, or allocated if that was not recorded; the largest of several workers.',
    figure: 'memory_peak_bytes',
    colour: colourOf('cpu'),
    format: bytes,
    steps: 'bytes',
    none: 'No device memory was recorded. Record it with profile(profile_memory=True).',
  },
];

/** The charts, in their order. */
export function panelsOf(trends: Trends): Panel[] {
  const { points } = trends;
  const lines = LINES.map(
    ({ figure: name, colour, ...rest }): Panel => ({
      ...rest,
      tickY: rest.format,
      series: [{ kind: 'line', id: rest.id, label: '', colour, values: figure(points, name) }],
    }),
  );
  return [stepPanel(points), partsPanel(trends), ...lines, findingsPanel(points)];
}

const valuesOf = (series: Series): Values => (series.kind === 'band' ? series.high : series.values);

export const isEmpty = ({ series }: Panel): boolean =>
  series.every((line) => valuesOf(line).every((value) => value === null));

/** The text of a series at a point; null without a value. */
function readingOf(series: Series, at: number, format: Panel['format']): string | null {
  if (series.kind === 'band') {
    const [low, high] = [series.low[at] ?? null, series.high[at] ?? null];
    if (low === null || high === null) return null;
    const [from, to] = [format(low), format(high)];
    return from === to ? from : `${from} – ${to}`;
  }
  const value = series.values[at] ?? null;
  return value === null || (series.kind === 'column' && value === 0) ? null : format(value);
}

export interface Reading {
  readonly series: Series;
  readonly text: string;
}

/** The texts of a chart at a point, for its head. */
export function readingsAt({ series, format }: Panel, at: number): Reading[] {
  return series.flatMap((line) => {
    const text = readingOf(line, at, format);
    return text === null ? [] : [{ series: line, text }];
  });
}

/** The change from the first to the last point, or for unrelated runs the range; empty for fewer than two points. */
export function verdictOf(points: readonly TrendPoint[], scope: Scope): string {
  const steps = points.flatMap(({ figures }) => figures.step_ns ?? []);
  const [first, last] = [steps[0], steps.at(-1)];
  if (steps.length < 2 || first === undefined || last === undefined) return '';
  if (scope === 'all') {
    const [least, most] = [Math.min(...steps), Math.max(...steps)];
    return `Mean steps between ${duration(least)} and ${duration(most)}`;
  }
  const change = relativeChange(first, last);
  const text = `Mean step ${duration(first)} → ${duration(last)}`;
  return `${text}${change === '' ? '' : `, ${change}`} from the first to the last trace`;
}

/** All values of all points, without empty categories. */
export function tableOf(trends: Trends, scope: Scope): ExportTable {
  const { points, figures } = trends;
  const categories = categoriesOf(trends);
  const shown = figures
    .filter(
      ({ name, unit }) =>
        unit !== 'ns' || OF_STEPS.has(name) || categories.includes(categoryOf(name)),
    )
    .map(({ name, label, unit, meaning }) => column(name, label, unit, meaning));
  const columns = [
    column('name', scope === 'spans' ? 'Span' : 'Run', 'text', 'Opens this trace.'),
    column('step_count', 'Steps', 'count', 'Complete steps of all workers.'),
    ...shown,
    column('finding_count', 'Findings', 'count', 'Findings; one of several workers counts once.'),
  ];
  const rows = points.map((point) => [
    nameOf(point, scope, points),
    point.step_count,
    ...shown.map(({ key }) => point.figures[key] ?? null),
    point.finding_count,
  ]);
  return { columns, rows };
}
