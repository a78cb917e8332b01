/** Ticks of a time axis: round steps with labels that differ. Pure. */
import { instant, tick } from '../core/format';
import type { Range } from './viewport';
import { lengthOf } from './viewport';

export interface Tick {
  readonly value: number;
  readonly label: string;
}

export interface Ticks {
  readonly step: number;
  readonly marks: readonly Tick[];
  /** The origin of relative labels, such as `1,234.567 ms`; null for absolute labels. */
  readonly anchor: Tick | null;
}

const MICROSECOND = 1e3;

/** The smallest of 1, 2, 5, 10, … that is not below `least`. */
export function roundStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  const factor = [1, 2, 5, 10].find((candidate) => candidate * power >= least * (1 - 1e-9)) ?? 10;
  return factor * power;
}

/** Ticks at least `leastPx` apart, from before the start of the view to after its end. */
export function ticksOf(view: Range, widthPx: number, leastPx = 110): Ticks {
  const step = roundStep((lengthOf(view) / Math.max(1, widthPx)) * leastPx);
  const first = Math.floor(view.start / step);
  const last = Math.ceil(view.end / step);
  const values = Array.from({ length: last - first + 1 }, (_, at) => (first + at) * step);
  if (step >= MICROSECOND) {
    return { step, anchor: null, marks: values.map((value) => ({ value, label: tick(value) })) };
  }
  const base = Math.floor(view.start / MICROSECOND) * MICROSECOND;
  const marks = values.map((value) => ({ value, label: `+${tick(value - base)}` }));
  return { step, anchor: { value: base, label: instant(base) }, marks };
}
