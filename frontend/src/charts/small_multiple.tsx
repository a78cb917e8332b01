import { type PointerEvent, type ReactNode, useRef } from 'react';
import { useSize } from './use_size';
import './small_multiple.css';

/** A line with gaps at missing values. */
export interface LineSeries {
  readonly kind: 'line';
  readonly id: string;
  readonly label: string;
  readonly colour: string;
  readonly values: readonly (number | null)[];
  readonly isDashed?: boolean;
}

/** A band from a low to a high value. */
export interface BandSeries {
  readonly kind: 'band';
  readonly id: string;
  readonly label: string;
  readonly colour: string;
  readonly low: readonly (number | null)[];
  readonly high: readonly (number | null)[];
}

/** Stacked columns. */
export interface ColumnSeries {
  readonly kind: 'column';
  readonly id: string;
  readonly label: string;
  readonly colour: string;
  readonly values: readonly (number | null)[];
}

export type Series = LineSeries | BandSeries | ColumnSeries;

/** Steps of ticks that are no round decimal numbers: powers of two, or whole numbers. */
export type Steps = 'bytes' | 'counts';

export interface SmallMultipleProps {
  /** Positions of the points, 0 to 1, ascending. */
  readonly xs: readonly number[];
  readonly labels: readonly string[];
  readonly series: readonly Series[];
  readonly tickY: (value: number) => string;
  /** The axis reaches at least this value: 1 for fractions of a whole. */
  readonly mostY?: number;
  readonly steps?: Steps | undefined;
  /** The point under the pointer, in any of the charts. */
  readonly hovered: number | null;
  readonly onHover: (at: number | null) => void;
  readonly chosen: number | null;
  readonly onChoose: (at: number) => void;
  readonly height?: number;
}

const LEFT = 62;
const RIGHT = 14;
const TOP = 8;
const BOTTOM = 22;
const LABEL_PX = 7;
const MOST_COLUMN_PX = 46;
const COLUMN_SHARE = 0.66;
const TICKS = 3;

/** A round step of which about `TICKS` reach `most`. */
export function roundStep(most: number, steps?: Steps): number {
  const rough = steps === 'counts' ? Math.max(1, most / TICKS) : most / TICKS;
  if (steps === 'bytes') return 2 ** Math.ceil(Math.log2(rough));
  const power = 10 ** Math.floor(Math.log10(rough));
  const factors = steps === 'counts' ? [1, 2, 5, 10] : [1, 2, 2.5, 5, 10];
  const factor = factors.find((one) => one * power >= rough) ?? 10;
  return factor * power;
}

const present = (values: readonly (number | null)[]): number[] =>
  values.flatMap((value) => (value === null ? [] : [value]));

/** The largest value, or the highest stack of columns. */
export function largestOf(series: readonly Series[], count: number): number {
  const stacks = Array.from({ length: count }, (_, at) =>
    series.reduce((sum, one) => sum + (one.kind === 'column' ? (one.values[at] ?? 0) : 0), 0),
  );
  const others = series.flatMap((one) => {
    if (one.kind === 'line') return present(one.values);
    return one.kind === 'band' ? present(one.high) : [];
  });
  return [...stacks, ...others].reduce((a, b) => Math.max(a, b), 0);
}

interface Scale {
  readonly x: (at: number) => number;
  readonly y: (value: number) => number;
  readonly ticks: readonly number[];
  readonly columnPx: number;
}

function scaleOf(props: SmallMultipleProps, width: number, height: number): Scale {
  const { xs, series, mostY = 0, steps } = props;
  const largest = Math.max(largestOf(series, xs.length), mostY) || 1;
  const step = roundStep(largest, steps);
  const count = Math.ceil(largest / step - 1e-9);
  const most = step * count;
  // Half a column at both ends, so that no column is cut.
  const inner = Math.max(1, width - LEFT - RIGHT);
  const gaps = xs.slice(1).map((x, at) => x - (xs[at] ?? 0));
  const least = Math.min(1 / Math.max(1, xs.length - 1), ...gaps);
  const columnPx = Math.max(
    2,
    Math.min(MOST_COLUMN_PX, (inner / (1 + least)) * least * COLUMN_SHARE),
  );
  const pad = columnPx / 2 + 4;
  return {
    x: (at) => LEFT + pad + (xs[at] ?? 0) * Math.max(1, inner - 2 * pad),
    y: (value) => TOP + (1 - value / most) * (height - TOP - BOTTOM),
    ticks: Array.from({ length: count + 1 }, (_, at) => at * step),
    columnPx,
  };
}

/** Runs of consecutive points with values. */
export function stretches(values: readonly (number | null)[]): number[][] {
  const runs: number[][] = [];
  values.forEach((value, at) => {
    if (value === null) return;
    if (at > 0 && values[at - 1] !== null && runs.length > 0) runs.at(-1)?.push(at);
    else runs.push([at]);
  });
  return runs;
}

interface DrawProps<T> {
  readonly of: T;
  readonly scale: Scale;
}

function DrawnLine({ of, scale }: DrawProps<LineSeries>): ReactNode {
  const place = (at: number): string => `${scale.x(at)},${scale.y(of.values[at] ?? 0)}`;
  return (
    <g stroke={of.colour} fill={of.colour}>
      {stretches(of.values).map((stretch) => (
        <polyline
          key={stretch[0]}
          className={of.isDashed ? 'multiple-line dashed' : 'multiple-line'}
          points={stretch.map(place).join(' ')}
        />
      ))}
      {!of.isDashed &&
        of.values.map((value, at) =>
          value === null ? null : (
            // biome-ignore lint/suspicious/noArrayIndexKey: a point is its place
            <circle key={at} cx={scale.x(at)} cy={scale.y(value)} r={2.6} stroke="none" />
          ),
        )}
    </g>
  );
}

function DrawnBand({ of, scale }: DrawProps<BandSeries>): ReactNode {
  const both = of.low.map((low, at) => (of.high[at] === null ? null : low));
  return stretches(both).map((stretch) => {
    const upper = stretch.map((at) => `${scale.x(at)},${scale.y(of.high[at] ?? 0)}`);
    const lower = stretch.map((at) => `${scale.x(at)},${scale.y(of.low[at] ?? 0)}`).reverse();
    return (
      <polygon
        key={stretch[0]}
        points={[...upper, ...lower].join(' ')}
        fill={of.colour}
        className="multiple-band"
      />
    );
  });
}

function DrawnColumns({
  all,
  count,
  scale,
}: {
  readonly all: readonly ColumnSeries[];
  readonly count: number;
  readonly scale: Scale;
}): ReactNode {
  return Array.from({ length: count }, (_, at) => {
    let sum = 0;
    return all.map((one) => {
      const value = one.values[at] ?? 0;
      sum += value;
      if (value <= 0) return null;
      return (
        <rect
          key={`${one.id} ${
            // biome-ignore lint/suspicious/noArrayIndexKey: a point is its place
            at
          }`}
          x={scale.x(at) - scale.columnPx / 2}
          y={scale.y(sum)}
          width={scale.columnPx}
          height={Math.max(0.5, scale.y(sum - value) - scale.y(sum))}
          fill={one.colour}
        />
      );
    });
  });
}

/** As many labels as fit, including the last one. */
function Labels({
  labels,
  scale,
  width,
  height,
}: {
  readonly labels: readonly string[];
  readonly scale: Scale;
  readonly width: number;
  readonly height: number;
}): ReactNode {
  const longest = labels.reduce((most, label) => Math.max(most, label.length), 1) * LABEL_PX + 10;
  let free = Number.NEGATIVE_INFINITY;
  return labels.map((label, at) => {
    const half = (label.length * LABEL_PX) / 2;
    const x = Math.max(half, Math.min(width - half, scale.x(at)));
    if (x < free) return null;
    free = x + longest;
    return (
      // biome-ignore lint/suspicious/noArrayIndexKey: a point is its place
      <text key={at} x={x} y={height - 6} textAnchor="middle" className="multiple-label">
        {label}
      </text>
    );
  });
}

/** One of several charts with the same points and a shared cursor. */
export function SmallMultiple(props: SmallMultipleProps): ReactNode {
  const { xs, labels, series, tickY, hovered, onHover, chosen, onChoose, height = 150 } = props;
  const box = useRef<HTMLDivElement>(null);
  const { width } = useSize(box);
  const scale = scaleOf(props, width, height);
  const nearest = (event: PointerEvent | React.MouseEvent): number | null => {
    const at = event.clientX - (box.current?.getBoundingClientRect().left ?? 0);
    let best: number | null = null;
    xs.forEach((_, place) => {
      if (best === null || Math.abs(scale.x(place) - at) < Math.abs(scale.x(best) - at))
        best = place;
    });
    return best;
  };
  const columns = series.filter((one) => one.kind === 'column');
  return (
    // The table offers the same by keyboard.
    <div
      className="multiple"
      ref={box}
      aria-hidden="true"
      onPointerMove={(event) => onHover(nearest(event))}
      onPointerLeave={() => onHover(null)}
      onClick={(event) => {
        const at = nearest(event);
        if (at !== null) onChoose(at);
      }}
    >
      {width > 0 && (
        <svg width={width} height={height} aria-hidden="true">
          {scale.ticks.map((value) => (
            <g key={value}>
              <line
                x1={LEFT}
                x2={width - RIGHT}
                y1={scale.y(value)}
                y2={scale.y(value)}
                className="multiple-grid"
              />
              <text x={LEFT - 8} y={scale.y(value) + 4} textAnchor="end" className="multiple-label">
                {tickY(value)}
              </text>
            </g>
          ))}
          {chosen !== null && (
            <rect
              className="multiple-chosen"
              x={scale.x(chosen) - scale.columnPx / 2 - 4}
              y={TOP}
              width={scale.columnPx + 8}
              height={height - TOP - BOTTOM}
            />
          )}
          {series.map((one) =>
            one.kind === 'band' ? <DrawnBand key={one.id} of={one} scale={scale} /> : null,
          )}
          <DrawnColumns all={columns} count={xs.length} scale={scale} />
          {series.map((one) =>
            one.kind === 'line' ? <DrawnLine key={one.id} of={one} scale={scale} /> : null,
          )}
          {hovered !== null && (
            <line
              className="multiple-cursor"
              x1={scale.x(hovered)}
              x2={scale.x(hovered)}
              y1={TOP}
              y2={height - BOTTOM}
            />
          )}
          <Labels labels={labels} scale={scale} width={width} height={height} />
        </svg>
      )}
    </div>
  );
}
