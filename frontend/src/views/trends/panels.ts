/** From the answer to the charts and to the table beside them. Pure. */

import type { Column, TrendPoint, Trends } from '../../api/types.gen';
import type { Series } from '../../charts/small_multiple';
import { categoryWords } from '../../core/categories';
import { colourOf } from '../../core/colour';
import { column } from '../../core/columns';
import {
  bytes,
  type CellValue,
  count,
  duration,
  relativeChange,
  share,
  tick,
} from '../../core/format';
import { nameOf, type Scope } from './points';

export interface Panel {
  readonly id: string;
  readonly title: string;
  readonly help: string;
  readonly series: readonly Series[];
  readonly tickY: (value: number) => string;
  readonly words: (value: number) => string;
  /** The axis ends there at least. */
  readonly mostY?: number;
  /** Why there is nothing to draw. */
  readonly none: string;
}

type Values = readonly (number | null)[];

const figure = (points: readonly TrendPoint[], name: string): Values =>
  points.map((point) => point.figures[name] ?? null);

const OF_STEPS: Readonly<Record<string, string>> = {
  step_ns: 'Mean step',
  median_step_ns: 'Median',
  longest_step_ns: 'Longest',
  step_deviation_ns: 'Deviation',
};
const OF_RECORDINGS: Readonly<Record<string, string>> = {
  busy_share: 'Busy',
  recoverable_share: 'Recoverable',
  memory_peak_bytes: 'Memory peak',
};

const categoryOf = (name: string): string => name.replace(/_ns$/, '');

/** The categories of step time that any point has. */
export function categoriesOf({ figures, points }: Trends): string[] {
  return figures
    .filter(({ name, unit }) => unit === 'ns' && !(name in OF_STEPS))
    .filter(({ name }) => points.some((point) => (point.figures[name] ?? 0) > 0))
    .map(({ name }) => categoryOf(name));
}

/** The mean step, so many deviations further. */
function deviated(points: readonly TrendPoint[], by: 1 | -1): Values {
  return points.map(({ figures }) => {
    const [mean, deviation] = [figures.step_ns ?? null, figures.step_deviation_ns ?? null];
    return mean === null || deviation === null ? null : Math.max(0, mean + by * deviation);
  });
}

const isOfMany = ({ traces }: TrendPoint): boolean => traces.length > 1;

/** Of points that are means over several workers: from the quickest to the slowest. */
function workersBand(points: readonly TrendPoint[]): Series[] {
  if (!points.some(isOfMany)) return [];
  return [
    {
      kind: 'band',
      id: 'workers',
      label: 'quickest – slowest worker',
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
    help: 'The mean step, until its work on the device ends; the band is one standard deviation of the steps.',
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
    words: duration,
    none: 'No steps were recorded: call profiler.step() in the loop.',
  };
}

function partsPanel(trends: Trends): Panel {
  return {
    id: 'parts',
    title: 'Where the step goes',
    help: 'The mean step by category; the categories sum to it.',
    series: categoriesOf(trends).map((id) => ({
      kind: 'column',
      id,
      label: categoryWords(id).label,
      colour: colourOf(id),
      values: figure(trends.points, `${id}_ns`),
    })),
    tickY: tick,
    words: duration,
    none: 'No steps were recorded: call profiler.step() in the loop.',
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
    help: 'Pieces of advice a recording by severity, symptoms and notes included.',
    series: SEVERITIES.map(([severity, colour]) => ({
      kind: 'column',
      id: severity,
      label: severity,
      colour,
      values: points.map((point) => point.severity_counts[severity] ?? 0),
    })),
    tickY: count,
    words: count,
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
    help: 'Of the window, in which the busiest device worked.',
    figure: 'busy_share',
    colour: colourOf('kernel'),
    words: share,
    mostY: 1,
    none: 'No work on a device was recorded.',
  },
  {
    id: 'recoverable',
    title: 'Recoverable',
    help: 'Of the step (or window), what all findings together could save at most.',
    figure: 'recoverable_share',
    colour: colourOf('dataloader'),
    words: share,
    mostY: 0.1,
    none: '',
  },
  {
    id: 'memory',
    title: 'Memory peak',
    help: 'Most that torch had taken from one device at once: reserved, or where that is not recorded allocated; of several workers the largest.',
    figure: 'memory_peak_bytes',
    colour: colourOf('cpu'),
    words: bytes,
    none: 'No memory of a device was recorded: profile(profile_memory=True).',
  },
];

/** The charts, in their order. */
export function panelsOf(trends: Trends): Panel[] {
  const { points } = trends;
  const lines = LINES.map(
    ({ figure: name, colour, ...rest }): Panel => ({
      ...rest,
      tickY: rest.words,
      series: [{ kind: 'line', id: rest.id, label: '', colour, values: figure(points, name) }],
    }),
  );
  return [stepPanel(points), partsPanel(trends), ...lines, findingsPanel(points)];
}

const valuesOf = (series: Series): Values => (series.kind === 'band' ? series.high : series.values);

export const isEmpty = ({ series }: Panel): boolean =>
  series.every((each) => valuesOf(each).every((value) => value === null));

/** What a series says at one point; nothing where it is not known, or a part is nothing. */
function said(series: Series, at: number, words: Panel['words']): string | null {
  if (series.kind === 'band') {
    const [low, high] = [series.low[at] ?? null, series.high[at] ?? null];
    return low === null || high === null ? null : `${words(low)} – ${words(high)}`;
  }
  const value = series.values[at] ?? null;
  return value === null || (series.kind === 'column' && value === 0) ? null : words(value);
}

export interface Said {
  readonly series: Series;
  readonly text: string;
}

/** What a chart says at one point, for its head. */
export function saidAt({ series, words }: Panel, at: number): Said[] {
  return series.flatMap((each) => {
    const text = said(each, at, words);
    return text === null ? [] : [{ series: each, text }];
  });
}

/** From the first to the last, or of runs that may have nothing in common, how far apart; empty for fewer than two. */
export function verdictOf(points: readonly TrendPoint[], scope: Scope): string {
  const known = points.flatMap(({ figures }) => figures.step_ns ?? []);
  const [first, last] = [known[0], known.at(-1)];
  if (known.length < 2 || first === undefined || last === undefined) return '';
  if (scope === 'all') {
    const [least, most] = [Math.min(...known), Math.max(...known)];
    return `Mean steps between ${duration(least)} and ${duration(most)}`;
  }
  const change = relativeChange(first, last);
  const words = `Mean step ${duration(first)} → ${duration(last)}`;
  return `${words}${change === '' ? '' : `, ${change}`} from the first to the last`;
}

export interface TrendTable {
  readonly columns: readonly Column[];
  readonly rows: readonly (readonly CellValue[])[];
}

/** Every figure of every point; categories that are nothing everywhere have no column. */
export function tableOf(trends: Trends, scope: Scope): TrendTable {
  const { points, figures } = trends;
  const categories = categoriesOf(trends);
  const labelOf = (name: string): string | undefined => {
    const known = OF_STEPS[name] ?? OF_RECORDINGS[name];
    const id = categoryOf(name);
    return known ?? (categories.includes(id) ? categoryWords(id).label : undefined);
  };
  const followed = figures.flatMap(({ name, unit, meaning }) => {
    const label = labelOf(name);
    return label === undefined ? [] : [column(name, label, unit, meaning)];
  });
  const columns = [
    column('name', scope === 'spans' ? 'Span' : 'Run', 'text', 'Opens this recording.'),
    column('step_count', 'Steps', 'count', 'Steps that were recorded whole, of all workers.'),
    ...followed,
    column('finding_count', 'Findings', 'count', 'Pieces of advice a recording.'),
  ];
  const rows = points.map((point) => [
    nameOf(point, scope, points),
    point.step_count,
    ...followed.map(({ key }) => point.figures[key] ?? null),
    point.finding_count,
  ]);
  return { columns, rows };
}
