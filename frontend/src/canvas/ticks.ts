/** Marks on an axis of time: round steps, labelled so that neighbours can be told apart. Pure. */
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
  /** Where labels are counted from when they are too fine to be written in full, e.g. `1,234.567 ms`. */
  readonly anchor: Tick | null;
}

const MICROSECOND = 1e3;

/** The smallest of 1, 2, 5, 10, … that is at least so much. */
export function roundStep(least: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  const found = [1, 2, 5, 10].find((factor) => factor * power >= least * (1 - 1e-9)) ?? 10;
  return found * power;
}

/** Marks no nearer to one another than `leastPx`, from just before the view's start to just after its end. */
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
