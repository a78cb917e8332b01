import { type KeyboardEvent, type ReactNode, useEffect, useMemo, useRef, useState } from 'react';
import { axesOf, fromZero, tipOf, type uPlot, usePlot } from './plot';
import {
  belowNames,
  boundsOf,
  drawBands,
  drawMarks,
  drawnValues,
  drawPeaks,
  fillStacks,
  GRID,
  seriesOf,
} from './series_drawing';
import type { Line, Range, TimeSeriesProps } from './time_series_types';
import { useDrag } from './use_drag';
import './charts.css';
import './time_series.css';

/** The tooltip of a moment. */
function tooltipOf({ xs, lines, words }: TimeSeriesProps, at: number): HTMLElement {
  const isStacked = lines.some((line) => line.stack !== undefined);
  const rows = (isStacked ? lines.toReversed() : lines).flatMap(({ label, colour, values }) => {
    const value = values[at] ?? null;
    if (value === null || (isStacked && value === 0)) return [];
    return [{ label, colour, value: words.y(value) }];
  });
  const x = xs[at];
  return x === undefined ? tipOf(null, []) : tipOf(words.x(x), rows);
}

function made(
  props: TimeSeriesProps,
): [Omit<uPlot.Options, 'width' | 'height'>, uPlot.AlignedData] {
  const { from, to } = boundsOf(props);
  const { words, xs, lines } = props;
  const series = seriesOf(props);
  return [
    {
      scales: {
        x: { time: false, range: [from, to] },
        y: { range: props.bands?.length ? belowNames : fromZero },
      },
      axes: axesOf({ grid: GRID, tickX: words.tickX, tickY: words.tickY, stepsY: words.stepsY }),
      series: [{}, ...series],
      cursor: { y: false, drag: { x: false, y: false }, points: { size: 6 } },
      hooks: {
        drawClear: [(chart) => drawBands(chart, props)],
        drawAxes: [(chart) => fillStacks(chart, lines)],
        draw: [
          (chart) => {
            drawMarks(chart, props);
            drawPeaks(chart, props);
          },
        ],
      },
    },
    [[...xs], ...drawnValues(lines)] as uPlot.AlignedData,
  ];
}

/** Converts between pixels and values for overlays. */
class Scale {
  constructor(
    private readonly bounds: Range,
    private readonly width: number,
  ) {}

  px(x: number): number {
    const { from, to } = this.bounds;
    const inside = this.width - GRID.left - GRID.right;
    const at = GRID.left + ((x - from) / Math.max(1e-9, to - from)) * inside;
    return Math.max(GRID.left, Math.min(this.width - GRID.right, at));
  }

  value(px: number): number {
    const { from, to } = this.bounds;
    const inside = Math.max(1, this.width - GRID.left - GRID.right);
    const share = Math.max(0, Math.min(1, (px - GRID.left) / inside));
    return from + share * (to - from);
  }
}

function wordsAt(props: TimeSeriesProps, at: number): string {
  const x = props.xs[at];
  if (x === undefined) return '';
  const values = props.lines
    .map((line) => ({ line, value: line.values[at] }))
    .filter((entry): entry is { line: Line; value: number } => typeof entry.value === 'number')
    .map(({ line, value }) => `${line.label} ${props.words.y(value)}`);
  return `${props.words.x(x)}: ${values.join(', ')}`;
}

const KEY_SHARE = 0.02;
const MOVES: Readonly<Record<string, number>> = { ArrowRight: 1, ArrowLeft: -1 };

interface Keys {
  readonly at: number | null;
  readonly onKeyDown: (event: KeyboardEvent) => void;
}

/**
 * Arrow keys move along the chart, Shift+arrow selects a range, Enter picks, Escape clears the
 * range.
 */
function useKeys(props: TimeSeriesProps): Keys {
  const { xs, onRange, onPick } = props;
  const [at, setAt] = useState<number | null>(null);
  const anchor = useRef<number | null>(null);
  const moved = (event: KeyboardEvent, step: number): void => {
    const stride = Math.max(1, Math.round(xs.length * KEY_SHARE));
    const next = Math.max(0, Math.min(xs.length - 1, (at ?? 0) + step * stride));
    if (!event.shiftKey) anchor.current = null;
    else {
      anchor.current ??= at ?? 0;
      const [from, to] = [xs[anchor.current] ?? 0, xs[next] ?? 0].sort((a, b) => a - b);
      if (from !== undefined && to !== undefined && from < to) onRange?.({ from, to });
    }
    setAt(next);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = MOVES[event.key];
    const x = at === null ? undefined : xs[at];
    if (step !== undefined) moved(event, step);
    else if (event.key === 'Enter' && x !== undefined && onPick) onPick(x);
    else if (event.key === 'Escape' && props.range && onRange) onRange(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return { at, onKeyDown };
}

interface OverProps {
  readonly props: TimeSeriesProps;
  readonly scale: Scale;
  readonly drag: readonly [number, number] | null;
  readonly chart: uPlot | null;
}

/** Overlays: the selected range and the current points. */
function Over({ props, scale, drag, chart }: OverProps): ReactNode {
  const { range, spots = [] } = props;
  const [low, high] = drag ? drag : range ? [range.from, range.to].map((x) => scale.px(x)) : [];
  const bottom = (props.height ?? 240) - GRID.bottom;
  return (
    <>
      {low !== undefined && high !== undefined && high > low && (
        <div
          className="series-range"
          style={{ left: low, width: high - low, top: GRID.top, bottom: GRID.bottom }}
        />
      )}
      {spots.map((spot) => {
        const top = GRID.top + (chart?.valToPos(spot.y, 'y') ?? 0);
        const style = {
          left: scale.px(spot.x),
          top,
          background: spot.colour,
          color: spot.colour,
          '--drop': `${Math.max(0, bottom - top)}px`,
        };
        return (
          <span key={`${spot.label} ${spot.x}`} className="series-spot" style={style}>
            <span className="visually-hidden">{spot.label}</span>
          </span>
        );
      })}
    </>
  );
}

/** A line chart over time or another axis, with range selection. */
export default function TimeSeries(props: TimeSeriesProps): ReactNode {
  const { xs, lines, marks, peaks, bands, theme, height = 240, onRange, onPick } = props;
  const box = useRef<HTMLDivElement>(null);
  const { from, to } = boundsOf(props);
  const { chart, widthPx } = usePlot({
    box,
    grid: GRID,
    height,
    make: () => made(props),
    tip: (at) => tooltipOf(props, at),
    dependencies: [xs, lines, marks, peaks, bands, from, to, theme],
  });
  const scale = useMemo(() => new Scale({ from, to }, widthPx), [from, to, widthPx]);
  const { drag, handlers } = useDrag({
    onClick: onPick && ((px) => onPick(scale.value(px))),
    onDrag: onRange && ((low, high) => onRange({ from: scale.value(low), to: scale.value(high) })),
  });
  const { at, onKeyDown } = useKeys(props);

  useEffect(() => {
    if (at === null || !chart) return;
    chart.setCursor({ left: chart.valToPos(xs[at] ?? 0, 'x'), top: 0 });
  }, [at, chart, xs]);

  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset would be no better word for a chart
    <div
      className={onRange ? 'series brushable' : 'series'}
      style={{ height }}
      role="group"
      aria-label={props.label}
      aria-roledescription="chart"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: the keys move along the curve
      tabIndex={0}
      onKeyDown={onKeyDown}
      {...handlers}
      onDoubleClick={() => onRange?.(null)}
    >
      <div className="series-canvas" ref={box} aria-hidden="true" />
      <Over props={props} scale={scale} drag={drag} chart={chart} />
      <span className="visually-hidden" role="status">
        {at === null ? '' : wordsAt(props, at)}
      </span>
    </div>
  );
}
