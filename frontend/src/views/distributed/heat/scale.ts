/**
 * Colours of values. Both ramps change evenly in lightness, so that they work without hues; the diverging one runs
 * from blue over grey to orange, which red-green colour blindness does not affect.
 */
import { packed, type Theme } from '../../../canvas/colours';
import { figure, type Grid, type Norm } from './grid';

const SEQUENTIAL: Readonly<Record<Theme, readonly string[]>> = {
  light: ['#fdf6e3', '#fbdf9d', '#f5b04c', '#dd7417', '#a3420d', '#5c1e06'],
  dark: ['#1d2430', '#4a2b1c', '#8a4715', '#d27a1e', '#f4b85c', '#fdf0c4'],
};
const DIVERGING: Readonly<Record<Theme, readonly string[]>> = {
  light: ['#1d4f91', '#6e9fd1', '#dfe6ee', '#f0f0ee', '#f6dfc4', '#e08a2e', '#8c3f05'],
  dark: ['#9cc9f2', '#4b82b8', '#283a4d', '#20262f', '#4a3724', '#c9762a', '#fbd08f'],
};

const SHADES = 256;
/** Fraction of cells at each end that does not stretch the scale. */
const OUTLYING = 0.0002;

export interface Scale {
  readonly low: number;
  readonly high: number;
  readonly isDiverging: boolean;
  /** Whether values lie beyond the end. */
  readonly isCutLow: boolean;
  readonly isCutHigh: boolean;
}

const channel = (hex: string, from: number): number =>
  Number.parseInt(hex.slice(from, from + 2), 16);

function mixed(stops: readonly string[], share: number): string {
  const position = Math.min(1, Math.max(0, share)) * (stops.length - 1);
  const at = Math.min(stops.length - 2, Math.floor(position));
  const [left = '#000000', right = '#000000'] = [stops[at], stops[at + 1]];
  const parts = [1, 3, 5].map((from) => {
    const value =
      channel(left, from) + (channel(right, from) - channel(left, from)) * (position - at);
    return Math.round(value).toString(16).padStart(2, '0');
  });
  return `#${parts.join('')}`;
}

/** The colours of a scale from low to high; bad values have the strong end. */
export function ramp(isDiverging: boolean, theme: Theme, isHighBad: boolean): string[] {
  const stops = (isDiverging ? DIVERGING : SEQUENTIAL)[theme];
  const ordered = isHighBad ? stops : [...stops].reverse();
  return Array.from({ length: SHADES }, (_, at) => mixed(ordered, at / (SHADES - 1)));
}

export const packedRamp = (colours: readonly string[]): Uint32Array =>
  Uint32Array.from(colours, (colour) => packed(colour));

function sortedFigures(grid: Grid, norm: Norm): Float64Array {
  const figures = new Float64Array(grid.values.length);
  let count = 0;
  for (let row = 0; row < grid.rows; row += 1) {
    for (let column = 0; column < grid.columns; column += 1) {
      const value = figure(grid, row, column, norm);
      if (!Number.isNaN(value)) figures[count++] = value;
    }
  }
  return figures.slice(0, count).sort();
}

export interface ScaleOptions {
  readonly norm: Norm;
  /** Lower values count as the floor: negative lateness is none. */
  readonly floor: number | null;
}

export function scaleOf(grid: Grid, { norm, floor }: ScaleOptions): Scale {
  const figures = sortedFigures(grid, norm);
  const { length } = figures;
  const beyond = Math.floor(length * OUTLYING);
  const [least = 0, most = 0] = [figures[0], figures[length - 1]];
  const [low = 0, high = 0] = [figures[beyond], figures[length - 1 - beyond]];
  const reach = Math.max(Math.abs(low), Math.abs(high));
  const isDiverging = norm === 'median';
  const start = isDiverging ? -reach : Math.max(floor ?? low, low);
  const end = isDiverging ? reach : Math.max(high, start);
  return { low: start, high: end, isDiverging, isCutLow: least < start, isCutHigh: most > end };
}

/** The shade of a value; -1 without one. */
export function shadeAt({ low, high, isDiverging }: Scale, value: number): number {
  if (Number.isNaN(value)) return -1;
  if (high <= low) return isDiverging ? SHADES >> 1 : 0;
  const share = (value - low) / (high - low);
  return Math.round(Math.min(1, Math.max(0, share)) * (SHADES - 1));
}
