import { type ReactNode, useRef } from 'react';
import { colourOf } from '../core/colour';
import { duration, tick } from '../core/format';
import { axesOf, fromZero, tipOf, uPlot, usePlot } from './plot';
import { useDrag } from './use_drag';
import './charts.css';

export interface StepColumn {
  readonly number: number;
  readonly name: string;
  readonly partsNs: readonly number[];
}

export interface StepColumnsProps {
  readonly steps: readonly StepColumn[];
  readonly categories: readonly { readonly id: string; readonly label: string }[];
  readonly selected: number | null;
  readonly onSelect: (step: number | null) => void;
  /** The first and last column of the filtered time; null: no filter. */
  readonly range?: readonly [number, number] | null;
  /** Receives the first and last column of a drag. */
  readonly onRange?: (first: number, last: number) => void;
  /** A change of the theme reads the colours again. */
  readonly theme: string;
}

const GRID = { left: 56, right: 8, top: 12, bottom: 26 } as const;
const HEIGHT_PX = 250;
const WIDEST_PX = 56;
const FILLED_SHARE = 0.72;
const DIMMED_SHARE = 35;

function tooltipOf({ steps, categories }: StepColumnsProps, at: number): HTMLElement | null {
  const step = steps[at];
  if (!step) return null;
  const whole = step.partsNs.reduce((sum, part) => sum + part, 0);
  const parts = categories.flatMap(({ id, label }, part) => {
    const ns = step.partsNs[part] ?? 0;
    return ns > 0 ? [{ label, value: duration(ns), colour: colourOf(id) }] : [];
  });
  return tipOf(null, [
    { label: step.name, value: duration(whole), colour: 'transparent' },
    ...parts,
  ]);
}

/** The upper edge of each category in each column. */
export function upperEdges(steps: readonly StepColumn[], count: number): number[][] {
  const below = steps.map(() => 0);
  return Array.from({ length: count }, (_, part) =>
    steps.map((step, at) => {
      const edge = (below[at] ?? 0) + (step.partsNs[part] ?? 0);
      below[at] = edge;
      return edge;
    }),
  );
}

function isDimmed({ selected, range }: StepColumnsProps, step: StepColumn, at: number): boolean {
  if (range) return at < range[0] || at > range[1];
  return selected !== null && step.number !== selected;
}

/** Columns from the highest category down: each covers the lower part of the previous one. */
function made(
  props: StepColumnsProps,
): [Omit<uPlot.Options, 'width' | 'height'>, uPlot.AlignedData] {
  const { steps, categories } = props;
  const edges = upperEdges(steps, categories.length);
  const order = categories.map((_, part) => part).reverse();
  const dimmed = steps.map((step, at) => isDimmed(props, step, at));
  const series = order.map((part): uPlot.Series => {
    const colour = colourOf(categories[part]?.id ?? '');
    // Opaque, because the columns behind would show through.
    const faint = `color-mix(in srgb, ${colour} ${DIMMED_SHARE}%, var(--surface))`;
    const fills = dimmed.map((isFaint) => (isFaint ? resolved(faint) : colour));
    const paths = uPlot.paths.bars?.({
      size: [FILLED_SHARE, WIDEST_PX],
      disp: { fill: { unit: 3, values: () => fills } },
    });
    return {
      label: categories[part]?.label ?? '',
      fill: colour,
      width: 0,
      points: { show: false },
      ...(paths ? { paths } : {}),
    };
  });
  const numbers = steps.map((step) => step.number);
  const wholes = (positions: readonly number[]): number[] =>
    positions.filter((position) => Number.isInteger(position) && numbers[position] !== undefined);
  return [
    {
      scales: { x: { time: false, range: [-0.5, steps.length - 0.5] }, y: { range: fromZero } },
      axes: axesOf({
        grid: GRID,
        tickX: (position) => String(numbers[position] ?? ''),
        tickY: tick,
        splitsX: (_, __, least, most, step) => {
          const every = Math.max(1, Math.round(step));
          const first = Math.ceil(least / every) * every;
          const count = Math.max(0, Math.floor((most - first) / every) + 1);
          return wholes(Array.from({ length: count }, (_unused, at) => first + at * every));
        },
      }),
      series: [{}, ...series],
      cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
    },
    [steps.map((_, at) => at), ...order.map((part) => edges[part] ?? [])] as uPlot.AlignedData,
  ];
}

/** A colour without CSS variables, for the canvas. */
function resolved(colour: string): string {
  const surface = getComputedStyle(document.documentElement).getPropertyValue('--surface').trim();
  return colour.replace('var(--surface)', surface);
}

/**
 * Steps as stacked columns; a click selects one, a second click clears the selection, a drag
 * selects a range.
 */
export default function StepColumns(props: StepColumnsProps): ReactNode {
  const { steps, categories, selected, range, onSelect, onRange, theme } = props;
  const box = useRef<HTMLDivElement>(null);
  const { chart } = usePlot({
    box,
    grid: GRID,
    height: HEIGHT_PX,
    make: () => made(props),
    tip: (at) => tooltipOf(props, at),
    dependencies: [steps, categories, selected, range?.[0], range?.[1], theme],
  });

  /** The whole height of a column is a target. */
  const columnAt = (px: number): number => {
    const at = Math.round(chart?.posToVal(px - GRID.left, 'x') ?? 0);
    return Math.min(Math.max(at, 0), steps.length - 1);
  };
  const select = (px: number): void => {
    const step = steps[columnAt(px)];
    if (step) onSelect(step.number === selected ? null : step.number);
  };
  const { drag, handlers } = useDrag({
    onClick: select,
    onDrag: (low, high) => {
      const [first, last] = [columnAt(low), columnAt(high)];
      if (last > first && onRange) onRange(first, last);
      else select(low);
    },
  });
  return (
    <div className="columns-drag" {...handlers}>
      <div className="columns-chart" ref={box} aria-hidden="true" />
      {drag && (
        <div
          className="columns-veil"
          style={{
            left: drag[0],
            width: drag[1] - drag[0],
            top: GRID.top,
            bottom: GRID.bottom,
          }}
        />
      )}
    </div>
  );
}
