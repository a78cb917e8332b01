import {
  type KeyboardEvent,
  type PointerEvent,
  type ReactNode,
  useEffect,
  useMemo,
  useRef,
  useState,
} from 'react';
import { cssVariable } from './css_variable';
import { axesOf, fromZero, fromZeroTo, label, uPlot, usePlot } from './plot';
import './charts.css';
import './time_series.css';

export interface Line {
  readonly id: string;
  readonly label: string;
  readonly colour: string;
  /** A value for each of `xs`; null: missing. */
  readonly values: readonly (number | null)[];
  /** Lines with the same name are stacked and filled. */
  readonly stack?: string;
  readonly isFilled?: boolean;
  readonly isDashed?: boolean;
  /** Whether a value holds until the next one; otherwise values are joined by slopes. */
  readonly holds?: boolean;
}

/** A vertical line with a label. */
export interface Mark {
  readonly x: number;
  readonly label: string;
  readonly colour: string;
}

/** A labelled point. */
export interface Spot {
  readonly x: number;
  readonly y: number;
  readonly label: string;
  readonly colour: string;
}

export interface Band {
  readonly from: number;
  readonly to: number;
  readonly label: string;
}

export interface Range {
  readonly from: number;
  readonly to: number;
}

export interface TimeSeriesProps {
  readonly xs: readonly number[];
  readonly lines: readonly Line[];
  /** The range of the axis; by default from the first to the last of `xs`. */
  readonly bounds?: Range;
  /** Formats of the values: short on the axes, exact in the tooltip. */
  readonly words: {
    readonly tickX: (value: number) => string;
    readonly x: (value: number) => string;
    readonly tickY: (value: number) => string;
    readonly y: (value: number) => string;
  };
  readonly marks?: readonly Mark[];
  /** Labelled points of the data, such as its peak. */
  readonly peaks?: readonly Spot[];
  /** Points drawn above the chart, which may change often. */
  readonly spots?: readonly Spot[];
  readonly bands?: readonly Band[];
  readonly range?: Range | null;
  /** Called with the range of a drag; without it the user cannot select a range. */
  readonly onRange?: (range: Range | null) => void;
  /** Called with the position of a click. */
  readonly onPick?: (x: number) => void;
  /** The accessible name of the chart. */
  readonly label: string;
  readonly height?: number;
  /** A change of the theme reads the colours again. */
  readonly theme: string;
}

const GRID = { left: 64, right: 26, top: 22, bottom: 26 } as const;
const LEAST_DRAG_PX = 4;
const FEW_POINTS = 48;

/** The tooltip of a moment, built of text nodes: labels from the trace are never HTML. */
function tooltipOf(props: TimeSeriesProps, at: number): HTMLElement {
  const box = document.createElement('div');
  const x = props.xs[at];
  if (x === undefined) return box;
  const head = box.appendChild(document.createElement('div'));
  head.className = 'muted';
  head.textContent = props.words.x(x);
  const isStacked = props.lines.some((line) => line.stack !== undefined);
  for (const line of isStacked ? props.lines.toReversed() : props.lines) {
    const value = line.values[at];
    if (value === null || value === undefined) continue;
    if (isStacked && value === 0) continue;
    const row = box.appendChild(document.createElement('div'));
    row.className = 'plot-tip-row';
    const swatch = row.appendChild(document.createElement('span'));
    swatch.className = 'swatch';
    swatch.style.background = line.colour;
    row.appendChild(document.createElement('span')).textContent = line.label;
    row.appendChild(document.createElement('b')).textContent = props.words.y(value);
  }
  return box;
}

function boundsOf({ bounds, xs }: TimeSeriesProps): Range {
  return bounds ?? { from: xs[0] ?? 0, to: xs.at(-1) ?? 1 };
}

/** Room for the labels of bands at the top. */
const belowNames = fromZeroTo(1.28);
const MOST_NAMED_BANDS = 400;
/** Approximate width of a letter of a band's label. */
const LETTER_PX = 6.6;
const PEAK_RADIUS_PX = 4;
const NEAR_EDGE_SHARE = 0.08;

/** Shades every other band, and labels bands where the label fits. */
function drawBands(chart: uPlot, props: TimeSeriesProps): void {
  const { bands = [] } = props;
  const { ctx, bbox } = chart;
  const shade = cssVariable('--row-hover');
  const muted = cssVariable('--muted');
  let freeFrom = 0;
  bands.forEach((band, at) => {
    const left = Math.max(bbox.left, chart.valToPos(band.from, 'x', true));
    const right = Math.min(bbox.left + bbox.width, chart.valToPos(band.to, 'x', true));
    if (at % 2 === 0) {
      ctx.fillStyle = shade;
      ctx.fillRect(left, bbox.top, right - left, bbox.height);
    }
    const widthPx = band.label.length * LETTER_PX * uPlot.pxRatio;
    const isInside = left + widthPx <= bbox.left + bbox.width + GRID.right * uPlot.pxRatio;
    if (bands.length >= MOST_NAMED_BANDS || left < freeFrom || !isInside) return;
    freeFrom = left + widthPx + LETTER_PX * uPlot.pxRatio;
    const y = bbox.top + 13 * uPlot.pxRatio;
    label(chart, band.label, { x: left + 5, y, align: 'left' }, { colour: muted });
  });
}

/** Draws vertical lines with labels. */
function drawMarks(chart: uPlot, { marks = [] }: TimeSeriesProps): void {
  const { ctx, bbox } = chart;
  for (const mark of marks) {
    const x = chart.valToPos(mark.x, 'x', true);
    ctx.strokeStyle = mark.colour;
    ctx.lineWidth = 1.5 * uPlot.pxRatio;
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    const y = bbox.top - 5 * uPlot.pxRatio;
    label(chart, mark.label, { x, y, align: 'center' }, { colour: mark.colour });
  }
}

/** Draws labelled points, with the label on the side that has room. */
function drawPeaks(chart: uPlot, props: TimeSeriesProps): void {
  const { ctx } = chart;
  const { from, to } = boundsOf(props);
  const radius = PEAK_RADIUS_PX * uPlot.pxRatio;
  for (const spot of props.peaks ?? []) {
    const [x, y] = [chart.valToPos(spot.x, 'x', true), chart.valToPos(spot.y, 'y', true)];
    ctx.beginPath();
    ctx.arc(x, y, radius, 0, 2 * Math.PI);
    ctx.fillStyle = spot.colour;
    ctx.strokeStyle = cssVariable('--surface');
    ctx.lineWidth = 1.5 * uPlot.pxRatio;
    ctx.fill();
    ctx.stroke();
    const share = (spot.x - from) / (to - from);
    const isLeft = share < NEAR_EDGE_SHARE;
    const isRight = share > 1 - NEAR_EDGE_SHARE;
    const aside = isLeft ? 2 * radius : isRight ? -2 * radius : 0;
    const place = {
      x: x + aside,
      y: aside === 0 ? y - 2 * radius : y + radius,
      align: isLeft ? ('left' as const) : isRight ? ('right' as const) : ('center' as const),
    };
    label(chart, spot.label, place, { colour: cssVariable('--text'), isBold: true });
  }
}

/** The values as drawn: stacked lines are cumulative. */
export function drawnValues(lines: readonly Line[]): (number | null)[][] {
  const below = new Map<string, number[]>();
  return lines.map(({ values, stack }) => {
    if (stack === undefined) return [...values];
    const base = below.get(stack) ?? values.map(() => 0);
    const sums = values.map((value, at) => (base[at] ?? 0) + (value ?? 0));
    below.set(stack, sums);
    return sums;
  });
}

const faint = (colour: string, share: number): string =>
  `color-mix(in srgb, ${colour} ${Math.round(share * 100)}%, transparent)`;

function seriesOf({ xs, lines }: TimeSeriesProps): uPlot.Series[] {
  const stepped = uPlot.paths.stepped?.({ align: 1 });
  return lines.map((line) => ({
    label: line.label,
    stroke: line.colour,
    width: line.stack === undefined ? 1.6 : 0.5,
    ...(line.isDashed ? { dash: [6, 4] } : {}),
    ...(line.holds && stepped ? { paths: stepped } : {}),
    ...(line.isFilled ? { fill: faint(line.colour, 0.14) } : {}),
    points: { show: line.stack === undefined && xs.length <= FEW_POINTS, size: 5 },
  }));
}

/** Fills between the lines of a stack. */
function fillStacks(chart: uPlot, lines: readonly Line[]): void {
  const { ctx } = chart;
  const lowest = new Map<string, number>();
  lines.forEach((line, place) => {
    if (line.stack === undefined) return;
    const under = lowest.get(line.stack);
    lowest.set(line.stack, place);
    const tops = chart.data[place + 1] ?? [];
    const floors = under === undefined ? null : chart.data[under + 1];
    ctx.fillStyle = faint(line.colour, 0.75);
    ctx.beginPath();
    outline(chart, tops, line.holds === true, 1);
    outline(chart, floors ?? tops.map(() => 0), line.holds === true, -1);
    ctx.closePath();
    ctx.fill();
  });
}

/** Traces values forwards or backwards. */
function outline(
  chart: uPlot,
  values: ArrayLike<number | null | undefined>,
  holds: boolean,
  direction: 1 | -1,
): void {
  const { ctx } = chart;
  const xs = chart.data[0];
  const count = xs.length;
  let before: number | null = null;
  for (let step = 0; step < count; step += 1) {
    const at = direction === 1 ? step : count - 1 - step;
    const x = chart.valToPos(xs[at] ?? 0, 'x', true);
    const y = chart.valToPos(values[at] ?? 0, 'y', true);
    // Held values have corners: at the old height forwards, at the new height backwards.
    if (holds && before !== null) {
      if (direction === 1) ctx.lineTo(x, before);
      else ctx.lineTo(chart.valToPos(xs[at + 1] ?? 0, 'x', true), y);
    }
    ctx.lineTo(x, y);
    before = y;
  }
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
      axes: axesOf({ grid: GRID, tickX: words.tickX, tickY: words.tickY }),
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

interface Drag {
  readonly fromPx: number;
  readonly toPx: number;
}

interface BrushOptions {
  readonly scale: Scale;
  readonly onRange: TimeSeriesProps['onRange'];
  readonly onPick: TimeSeriesProps['onPick'];
}

interface Brush {
  readonly drag: Drag | null;
  readonly handlers: {
    readonly onPointerDown: (event: PointerEvent<HTMLElement>) => void;
    readonly onPointerMove: (event: PointerEvent<HTMLElement>) => void;
    readonly onPointerUp: (event: PointerEvent<HTMLElement>) => void;
    readonly onPointerCancel: () => void;
  };
}

/** A drag selects a range; a click picks a moment. */
function useBrush({ scale, onRange, onPick }: BrushOptions): Brush {
  const [drag, setDrag] = useState<Drag | null>(null);
  const pxOf = (event: PointerEvent<HTMLElement>): number =>
    event.clientX - event.currentTarget.getBoundingClientRect().left;
  const isDrag = ({ fromPx, toPx }: Drag): boolean => Math.abs(toPx - fromPx) >= LEAST_DRAG_PX;
  return {
    drag: drag && onRange && isDrag(drag) ? drag : null,
    handlers: {
      onPointerDown: (event) => {
        if (event.button !== 0 || !(onRange || onPick)) return;
        event.currentTarget.setPointerCapture?.(event.pointerId);
        const px = pxOf(event);
        setDrag({ fromPx: px, toPx: px });
      },
      onPointerMove: (event) => {
        if (drag) setDrag({ ...drag, toPx: pxOf(event) });
      },
      onPointerUp: (event) => {
        if (!drag) return;
        const done = { ...drag, toPx: pxOf(event) };
        setDrag(null);
        const [from, to] = [done.fromPx, done.toPx].sort((a, b) => a - b) as [number, number];
        if (!isDrag(done)) onPick?.(scale.value(to));
        else onRange?.({ from: scale.value(from), to: scale.value(to) });
      },
      onPointerCancel: () => setDrag(null),
    },
  };
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
  readonly drag: Drag | null;
  readonly chart: uPlot | null;
}

/** Overlays: the selected range and the current points. */
function Over({ props, scale, drag, chart }: OverProps): ReactNode {
  const { range, spots = [] } = props;
  const [low, high] = drag
    ? [drag.fromPx, drag.toPx].sort((a, b) => a - b)
    : range
      ? [range.from, range.to].map((x) => scale.px(x))
      : [];
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
  const { drag, handlers } = useBrush({ scale, onRange, onPick });
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
