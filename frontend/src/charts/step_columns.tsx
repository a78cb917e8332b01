import { type PointerEvent, type ReactNode, useRef, useState } from 'react';
import { colourOf } from '../core/colour';
import { duration, tick } from '../core/format';
import { axesOf, fromZero, uPlot, usePlot } from './plot';
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
/** Shorter drags are clicks. */
const LEAST_DRAG_PX = 6;

/** The tooltip of a step, built of text nodes: names from the trace are never HTML. */
function tooltipOf(props: StepColumnsProps, at: number): HTMLElement | null {
  const step = props.steps[at];
  if (!step) return null;
  const box = document.createElement('div');
  const line = (label: string, value: number, colour: string | null): void => {
    const row = box.appendChild(document.createElement('div'));
    row.className = 'plot-tip-row';
    const swatch = row.appendChild(document.createElement('span'));
    swatch.className = 'swatch';
    swatch.style.background = colour ?? 'transparent';
    row.appendChild(document.createElement('span')).textContent = label;
    row.appendChild(document.createElement('b')).textContent = duration(value);
  };
  line(
    step.name,
    step.partsNs.reduce((sum, part) => sum + part, 0),
    null,
  );
  props.categories.forEach((category, part) => {
    const value = step.partsNs[part] ?? 0;
    if (value > 0) line(category.label, value, colourOf(category.id));
  });
  return box;
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

interface Drag {
  readonly fromPx: number;
  readonly toPx: number;
}

const isDrag = ({ fromPx, toPx }: Drag): boolean => Math.abs(toPx - fromPx) >= LEAST_DRAG_PX;

/**
 * Steps as stacked columns; a click selects one, a second click clears the selection, a drag
 * selects a range.
 */
export default function StepColumns(props: StepColumnsProps): ReactNode {
  const { steps, categories, selected, range, onSelect, onRange, theme } = props;
  const box = useRef<HTMLDivElement>(null);
  const [drag, setDrag] = useState<Drag | null>(null);
  const { chart } = usePlot({
    box,
    grid: GRID,
    height: HEIGHT_PX,
    make: () => made(props),
    tip: (at) => tooltipOf(props, at),
    dependencies: [steps, categories, selected, range?.[0], range?.[1], theme],
  });

  const pxOf = (event: PointerEvent<HTMLElement>): number =>
    event.clientX - event.currentTarget.getBoundingClientRect().left;
  /** The whole height of a column is a target. */
  const columnAt = (px: number): number => {
    const at = Math.round(chart?.posToVal(px - GRID.left, 'x') ?? 0);
    return Math.min(Math.max(at, 0), steps.length - 1);
  };
  const release = (done: Drag): void => {
    const [first = 0, last = 0] = [columnAt(done.fromPx), columnAt(done.toPx)].sort(
      (a, b) => a - b,
    );
    const step = steps[first];
    if (isDrag(done) && last > first && onRange) onRange(first, last);
    else if (step) onSelect(step.number === selected ? null : step.number);
  };
  const [left, right] = drag ? [drag.fromPx, drag.toPx].sort((a, b) => a - b) : [];
  return (
    <div
      className="columns-drag"
      onPointerDown={(event) => {
        if (event.button !== 0) return;
        event.currentTarget.setPointerCapture?.(event.pointerId);
        const px = pxOf(event);
        setDrag({ fromPx: px, toPx: px });
      }}
      onPointerMove={(event) => drag && setDrag({ ...drag, toPx: pxOf(event) })}
      onPointerUp={(event) => {
        if (!drag) return;
        setDrag(null);
        release({ ...drag, toPx: pxOf(event) });
      }}
      onPointerCancel={() => setDrag(null)}
    >
      <div className="columns-chart" ref={box} aria-hidden="true" />
      {drag && isDrag(drag) && left !== undefined && right !== undefined && (
        <div
          className="columns-veil"
          style={{ left, width: right - left, top: GRID.top, bottom: GRID.bottom }}
        />
      )}
    </div>
  );
}
