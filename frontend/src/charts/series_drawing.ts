/** Draws bands, marks, peaks and stacks of a line chart. */
import { cssVariable } from './css_variable';
import { fromZeroTo, label, uPlot } from './plot';
import type { Line, Range, TimeSeriesProps } from './time_series_types';

export const GRID = { left: 64, right: 26, top: 22, bottom: 26 } as const;
const FEW_POINTS = 48;

export function boundsOf({ bounds, xs }: TimeSeriesProps): Range {
  return bounds ?? { from: xs[0] ?? 0, to: xs.at(-1) ?? 1 };
}

/** Room for the labels of bands at the top. */
export const belowNames = fromZeroTo(1.28);
const MOST_NAMED_BANDS = 400;
/** Approximate width of a letter of a band's label. */
const LETTER_PX = 6.6;
const PEAK_RADIUS_PX = 4;
const NEAR_EDGE_SHARE = 0.08;

/** Shades every other band, and labels bands where the label fits. */
export function drawBands(chart: uPlot, props: TimeSeriesProps): void {
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
export function drawMarks(chart: uPlot, { marks = [] }: TimeSeriesProps): void {
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
export function drawPeaks(chart: uPlot, props: TimeSeriesProps): void {
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

export function seriesOf({ xs, lines }: TimeSeriesProps): uPlot.Series[] {
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
export function fillStacks(chart: uPlot, lines: readonly Line[]): void {
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
