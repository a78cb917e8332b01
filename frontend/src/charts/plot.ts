/** Shared parts of uPlot charts: lifetime, axes, tooltip. */
import { type RefObject, useEffect, useRef, useState } from 'react';
import uPlot from 'uplot';
import 'uplot/dist/uPlot.min.css';
import './plot.css';
import { cssVariable } from './css_variable';
import { useSize } from './use_size';

export interface Grid {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

export interface AxesOptions {
  readonly grid: Grid;
  readonly tickX: (value: number) => string;
  readonly tickY: (value: number) => string;
  /** Steps of the ticks on the vertical axis, ascending; 1, 2, 2.5 and 5 × 10ⁿ by default. */
  readonly stepsY?: readonly number[] | undefined;
  /** Positions of the ticks on the horizontal axis; round values by default. */
  readonly splitsX?: uPlot.Axis.Splits;
}

const FONT_PX = 12;
const LEAST_Y_GAP_PX = 42;
const LEAST_X_GAP_PX = 72;
const TIP_GAP_PX = 14;

/** Axes in the colours of the page. */
export function axesOf({ grid, tickX, tickY, stepsY, splitsX }: AxesOptions): uPlot.Axis[] {
  const muted = cssVariable('--muted');
  const line = { stroke: cssVariable('--line'), width: 1 };
  const font = `${FONT_PX}px ${cssVariable('--sans')}`;
  return [
    {
      size: grid.bottom,
      gap: 3,
      space: LEAST_X_GAP_PX,
      stroke: muted,
      font,
      grid: { show: false },
      ticks: { ...line, size: 4 },
      border: { show: true, ...line },
      values: (_, splits) => splits.map(tickX),
      ...(splitsX ? { splits: splitsX } : {}),
    },
    {
      size: grid.left,
      space: LEAST_Y_GAP_PX,
      stroke: muted,
      font,
      grid: line,
      ticks: { show: false },
      values: (_, splits) => splits.map(tickY),
      ...(stepsY ? { incrs: [...stepsY] } : {}),
    },
  ];
}

/** From 0, or the lowest negative value, to a multiple of the largest value. */
export const fromZeroTo =
  (times: number): uPlot.Scale.Range =>
  (_, least, most) => {
    const low = Math.min(0, least ?? 0);
    const high = Math.max(0, most ?? 0);
    return [low * 1.06, high > low ? high * times : low + 1];
  };

/** From 0, or the lowest negative value, to slightly above the largest value. */
export const fromZero = fromZeroTo(1.06);

interface Options {
  readonly box: RefObject<HTMLElement | null>;
  readonly grid: Grid;
  readonly height: number;
  /** The options without the size, and the data. */
  readonly make: () => readonly [Omit<uPlot.Options, 'width' | 'height'>, uPlot.AlignedData];
  /** The content of the tooltip at a data index; null: no tooltip. */
  readonly tip: (at: number) => HTMLElement | null;
  /** A change of these creates the chart again. */
  readonly dependencies: readonly unknown[];
}

export interface Plot {
  readonly chart: uPlot | null;
  readonly widthPx: number;
}

/** Puts the tooltip on the side of the pointer that has room. */
function placed(tip: HTMLElement, chart: uPlot, grid: Grid): void {
  const x = grid.left + (chart.cursor.left ?? 0);
  const isRight = x + TIP_GAP_PX + tip.offsetWidth > chart.width;
  const left = isRight ? Math.max(0, x - TIP_GAP_PX - tip.offsetWidth) : x + TIP_GAP_PX;
  tip.style.left = `${left}px`;
  tip.style.top = `${grid.top + 4}px`;
}

/** A uPlot chart as wide as its box, with a tooltip. */
export function usePlot({ box, grid, height, make, tip, dependencies }: Options): Plot {
  const [chart, setChart] = useState<uPlot | null>(null);
  const { width: widthPx } = useSize(box);
  const latest = useRef({ make, tip });
  latest.current = { make, tip };

  const isWide = widthPx > 0;
  // biome-ignore lint/correctness/useExhaustiveDependencies: what it shows is said by `dependencies`; the rest is read from `latest`
  useEffect(() => {
    const element = box.current;
    if (!element || !isWide) return undefined;
    const words = document.createElement('div');
    words.className = 'plot-tip tip popup';
    words.hidden = true;
    const [options, data] = latest.current.make();
    const made = new uPlot(
      {
        ...options,
        width: element.clientWidth,
        height,
        padding: [grid.top, grid.right, 0, 0],
        legend: { show: false },
        hooks: {
          ...options.hooks,
          setCursor: [
            (self) => {
              const at = self.cursor.idx;
              const inside = (self.cursor.left ?? -1) >= 0;
              const shown = inside && typeof at === 'number' ? latest.current.tip(at) : null;
              words.hidden = shown === null;
              if (!shown) return;
              words.replaceChildren(shown);
              placed(words, self, grid);
            },
          ],
        },
      },
      data,
      element,
    );
    element.append(words);
    setChart(made);
    return () => {
      words.remove();
      made.destroy();
      setChart(null);
    };
  }, [isWide, height, ...dependencies]);

  useEffect(() => {
    if (chart && widthPx > 0 && chart.width !== widthPx) chart.setSize({ width: widthPx, height });
  }, [chart, widthPx, height]);

  return { chart, widthPx };
}

export interface TipRow {
  readonly label: string;
  readonly value: string;
  readonly colour: string;
}

/** A tooltip, built of text nodes: names from the trace are never HTML. */
export function tipOf(head: string | null, rows: readonly TipRow[]): HTMLElement {
  const box = document.createElement('div');
  if (head !== null) {
    const first = box.appendChild(document.createElement('div'));
    first.className = 'muted';
    first.textContent = head;
  }
  for (const { label: name, value, colour } of rows) {
    const row = box.appendChild(document.createElement('div'));
    row.className = 'plot-tip-row';
    const swatch = row.appendChild(document.createElement('span'));
    swatch.className = 'swatch';
    swatch.style.background = colour;
    row.appendChild(document.createElement('span')).textContent = name;
    row.appendChild(document.createElement('b')).textContent = value;
  }
  return box;
}

/** Text on the canvas with an outline in the surface's colour. */
export function label(
  chart: uPlot,
  words: string,
  at: { readonly x: number; readonly y: number; readonly align: CanvasTextAlign },
  look: { readonly colour: string; readonly isBold?: boolean },
): void {
  const { ctx } = chart;
  const ratio = uPlot.pxRatio;
  ctx.save();
  ctx.font = `${look.isBold ? '600 ' : ''}${FONT_PX * ratio}px ${cssVariable('--sans')}`;
  ctx.textAlign = at.align;
  ctx.textBaseline = 'alphabetic';
  ctx.lineWidth = 3 * ratio;
  ctx.lineJoin = 'round';
  ctx.strokeStyle = cssVariable('--surface');
  ctx.fillStyle = look.colour;
  ctx.strokeText(words, at.x, at.y);
  ctx.fillText(words, at.x, at.y);
  ctx.restore();
}

export { uPlot };
