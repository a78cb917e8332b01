/**
 * The only place where numbers become text: three significant digits to read, every digit to copy.
 * `plugin/stepscope/base/formatting.py` is its twin: sentences from there stand beside figures from here.
 */
import type { Unit } from './units';

const NONE = '–';
const grouped = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });
const groupedFraction = new Intl.NumberFormat('en-US', { maximumFractionDigits: 6 });

interface Scale {
  readonly factor: number;
  readonly name: string;
}

const TIME: readonly Scale[] = [
  { factor: 1, name: 'ns' },
  { factor: 1e3, name: 'µs' },
  { factor: 1e6, name: 'ms' },
  { factor: 1e9, name: 's' },
];
const BYTES: readonly Scale[] = [
  { factor: 1, name: 'B' },
  { factor: 1e3, name: 'kB' },
  { factor: 1e6, name: 'MB' },
  { factor: 1e9, name: 'GB' },
  { factor: 1e12, name: 'TB' },
];
const RATE: readonly Scale[] = [
  { factor: 1, name: 'B/s' },
  { factor: 1e3, name: 'kB/s' },
  { factor: 1e6, name: 'MB/s' },
  { factor: 1e9, name: 'GB/s' },
  { factor: 1e12, name: 'TB/s' },
];

/** A number with three significant digits, never with an exponent. */
export function significant(value: number): string {
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size >= 99.95) return grouped.format(value);
  if (size < 0.001) return groupedFraction.format(value);
  return value.toPrecision(3);
}

/** The largest scale in which the value, as it will be rounded, is at least one. */
function scaleOf(value: number, scales: readonly Scale[]): Scale {
  const size = Math.abs(value);
  let found = scales[0] as Scale;
  for (const scale of scales) if (size >= scale.factor * 0.9995) found = scale;
  return found;
}

function scaled(value: number, scales: readonly Scale[]): string {
  const scale = scaleOf(value, scales);
  const number = value / scale.factor;
  const text = scale.factor === 1 && Number.isInteger(value) ? String(value) : significant(number);
  return `${text} ${scale.name}`;
}

/** A length of time: `178 ms`. */
export const duration = (ns: number): string => scaled(ns, TIME);

/** A low and a high time in one unit: `44.5–59.3 ms`. */
export function durationRange(lowNs: number, highNs: number): string {
  const scale = scaleOf(highNs, TIME);
  const low = significant(lowNs / scale.factor);
  const high = significant(highNs / scale.factor);
  return low === high ? `${high} ${scale.name}` : `${low}–${high} ${scale.name}`;
}

/** A mark on an axis of time: as a duration, without zeros that say nothing. */
export function tick(ns: number): string {
  const scale = scaleOf(ns, TIME);
  return ns === 0 ? '0' : `${groupedFraction.format(ns / scale.factor)} ${scale.name}`;
}

/** A mark on an axis of bytes: as a size, without zeros that say nothing. */
export function tickBytes(value: number): string {
  const scale = scaleOf(value, BYTES);
  return value === 0 ? '0' : `${groupedFraction.format(value / scale.factor)} ${scale.name}`;
}

/** A point in time since the trace's first event, to the microsecond: `1,234.567 ms`. */
export const instant = (ns: number): string =>
  `${(ns / 1e6).toLocaleString('en-US', { minimumFractionDigits: 3, maximumFractionDigits: 3 })} ms`;

/** A time that is only guessed, rounded up: `12 s`, `3 min`, `2 h 05 min`. */
export function roughly(ns: number): string {
  const seconds = Math.max(1, Math.ceil(ns / 1e9));
  const minutes = Math.ceil(seconds / 60);
  if (seconds < 60) return `${seconds} s`;
  if (minutes < 60) return `${minutes} min`;
  return `${Math.floor(minutes / 60)} h ${String(minutes % 60).padStart(2, '0')} min`;
}

export const bytes = (value: number): string => scaled(value, BYTES);
export const rate = (value: number): string => scaled(value, RATE);

export const count = (value: number): string =>
  Number.isInteger(value) ? grouped.format(value) : significant(value);

/** A fraction from 0 to 1 as a percentage: `33.4 %`. */
export function share(value: number): string {
  const percent = value * 100;
  if (percent !== 0 && Math.abs(percent) < 0.01) return '< 0.01 %';
  if (percent >= 99.95 && percent < 100) return '> 99.9 %';
  if (percent === 0 || percent === 100) return `${percent} %`;
  return `${Math.abs(percent) < 1 ? percent.toFixed(2) : significant(percent)} %`;
}

/** `1 step`, `6 steps`. */
export const plural = (value: number, one: string, many = `${one}s`): string =>
  `${grouped.format(value)} ${value === 1 ? one : many}`;

/** What a cell may hold: null is *not recorded*. */
export type CellValue = number | string | boolean | null | undefined;

const SHORT: Record<Unit, (value: number) => string> = {
  ns: duration,
  bytes,
  share,
  count,
  'bytes/s': rate,
  text: String, // a number that is a name: of an event, a stream
  code: String,
};

const EXACT: Record<Unit, (value: number) => string> = {
  ns: (value) => `${groupedFraction.format(value)} ns`,
  bytes: (value) => `${groupedFraction.format(value)} bytes`,
  share: (value) => `${groupedFraction.format(value * 100)} %`,
  count: (value) => groupedFraction.format(value),
  'bytes/s': (value) => `${groupedFraction.format(value)} bytes/s`,
  text: String, // a number that is a name: of an event, a stream
  code: String,
};

/** A value in its unit, to read. */
export function quantity(value: CellValue, unit: Unit): string {
  if (value === null || value === undefined) return NONE;
  if (typeof value === 'number') return Number.isFinite(value) ? SHORT[unit](value) : NONE;
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  return value;
}

/** A value in its unit with every digit, for tooltips. */
export function quantityExact(value: CellValue, unit: Unit): string {
  if (value === null || value === undefined) return 'not recorded';
  if (typeof value === 'number') return EXACT[unit](value);
  return quantity(value, unit);
}

const LEAST_POINTS = 0.01;

/** How many percentage points a share changed by, with its sign; less than any recording can tell is said so. */
function points(delta: number): string {
  const size = Math.abs(delta) * 100;
  if (size < LEAST_POINTS) return `< ${LEAST_POINTS} points`;
  return `${signOf(delta)}${significant(size)} points`;
}

const signOf = (value: number): string => (value > 0 ? '+' : '−');

/** By how much a figure changed, with its sign: `−55.0 ms`, `+4.10 points`; a true minus, as wide as the plus. */
export function change(delta: number, unit: Unit): string {
  if (delta === 0) return '0';
  return unit === 'share' ? points(delta) : signOf(delta) + quantity(Math.abs(delta), unit);
}

/** By which share of what it was a figure changed: `−32.0 %`; nothing where it was nothing, or is the same. */
export function relativeChange(before: number, after: number): string {
  if (before === 0 || before === after) return '';
  const size = Math.abs((after - before) / before);
  return size < 0.001 ? '< 0.1 %' : signOf(after - before) + share(size);
}

/** When a file was recorded, by the clock of whoever reads it: `2026-01-01 00:05:10`; empty where it is not known. */
export function recordedTime(ns: string): string {
  const at = new Date(Number(ns.slice(0, -6)));
  if (ns === '' || Number.isNaN(at.getTime())) return '';
  const two = (value: number): string => String(value).padStart(2, '0');
  const day = [at.getFullYear(), two(at.getMonth() + 1), two(at.getDate())].join('-');
  return `${day} ${[at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(':')}`;
}

/** The chance of a change if nothing had changed: `p = 0.02`, `p < 0.001`. */
export const chance = (p: number): string =>
  p < 0.001 ? 'p < 0.001' : `p = ${Number(p.toPrecision(2))}`;

/** A text whose lines end nowhere between a number and its unit. */
export const unbroken = (text: string): string =>
  text.replace(/(\d) (?=(?:%|ns|µs|ms|s|[kMGT]?B)(?![A-Za-z]))/g, '$1\u00a0');
