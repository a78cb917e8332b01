/**
 * Formats numbers: three significant digits in text, all digits in tooltips. Twin of
 * `plugin/stepscope/base/formatting.py`; `tests/formatted_numbers.json` holds the texts that both give.
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
  { factor: 2 ** 10, name: 'KiB' },
  { factor: 2 ** 20, name: 'MiB' },
  { factor: 2 ** 30, name: 'GiB' },
  { factor: 2 ** 40, name: 'TiB' },
];
const RATE: readonly Scale[] = [
  { factor: 1, name: 'B/s' },
  { factor: 1e3, name: 'kB/s' },
  { factor: 1e6, name: 'MB/s' },
  { factor: 1e9, name: 'GB/s' },
  { factor: 1e12, name: 'TB/s' },
];

/** Three significant digits without an exponent. */
export function significant(value: number): string {
  if (value === 0) return '0';
  const size = Math.abs(value);
  if (size >= 99.95) return grouped.format(value);
  if (size < 1e-4) return '< 0.0001';
  return value.toPrecision(3);
}

/** The largest scale in which the rounded value is at least one. */
function scaleOf(value: number, scales: readonly Scale[]): Scale {
  const size = Math.abs(value);
  let best = scales[0] as Scale;
  for (const scale of scales) if (size >= scale.factor * 0.9995) best = scale;
  return best;
}

/** A value in a unit; of the smallest, a whole number. */
const inScale = (value: number, { factor }: Scale): string =>
  factor === 1 ? value.toFixed(0) : significant(value / factor);

function scaled(value: number, scales: readonly Scale[]): string {
  const scale = scaleOf(value, scales);
  return `${inScale(value, scale)} ${scale.name}`;
}

function scaledRange(low: number, high: number, scales: readonly Scale[]): string {
  const scale = scaleOf(high, scales);
  const [least, most] = [inScale(low, scale), inScale(high, scale)];
  return least === most ? `${most} ${scale.name}` : `${least}–${most} ${scale.name}`;
}

/** A duration: `178 ms`. */
export const duration = (ns: number): string => scaled(ns, TIME);

/** Two durations in one unit: `44.5–59.3 ms`. */
export const durationRange = (lowNs: number, highNs: number): string =>
  scaledRange(lowNs, highNs, TIME);

/** A tick of a time axis: a duration without trailing zeros. */
export function tick(ns: number): string {
  const scale = scaleOf(ns, TIME);
  return ns === 0 ? '0' : `${groupedFraction.format(ns / scale.factor)} ${scale.name}`;
}

/** Steps of a memory axis: powers of two up to 8 PiB. */
export const BYTE_STEPS: readonly number[] = Array.from({ length: 54 }, (_, power) => 2 ** power);

/** A tick of a memory axis: a size without trailing zeros. */
export function tickBytes(value: number): string {
  const scale = scaleOf(value, BYTES);
  return value === 0 ? '0' : `${groupedFraction.format(value / scale.factor)} ${scale.name}`;
}

/** A time since the first event of the trace: `1,234.567 ms`. */
export const instant = (ns: number): string =>
  `${(ns / 1e6).toLocaleString('en-US', { minimumFractionDigits: 3, maximumFractionDigits: 3 })} ms`;

/** An estimated duration, rounded up: `12 s`, `3 min`, `2 h 05 min`. */
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

/** A fraction as a percentage: `33.4 %`, `< 0.1 %`, `> 99.9 %`. */
export function share(value: number): string {
  const percent = Math.abs(value - 1) < 1e-9 ? 100 : value * 100; // sums of fractions
  if (percent > 0 && percent < 0.1) return '< 0.1 %';
  if (percent >= 99.95 && percent < 100) return '> 99.9 %';
  return `${percent.toFixed(1)} %`;
}

/** A fraction in percent; only a whole is 100. */
function percent(value: number): string {
  const text = (value * 100).toFixed(1);
  return value < 1 && text === '100.0' ? '99.9' : text;
}

/** Two fractions as percentages: `24.1–72.6 %`, `0–72.6 %`. */
export function shareRange(low: number, high: number): string {
  const [least, most] = [percent(low), percent(high)];
  return least === most ? share(high) : `${Number(least) === 0 ? '0' : least}–${most} %`;
}

/** `1 step`, `6 steps`. */
export const plural = (value: number, one: string, many = `${one}s`): string =>
  `${grouped.format(value)} ${value === 1 ? one : many}`;

/** The value of a cell: null means *not recorded*. */
export type CellValue = number | string | boolean | null | undefined;

const SHORT: Record<Unit, (value: number) => string> = {
  ns: duration,
  bytes,
  share,
  count,
  'bytes/s': rate,
  text: String, // an identifier: of an event, a stream
  code: String,
};

const EXACT: Record<Unit, (value: number) => string> = {
  ns: (value) => `${groupedFraction.format(value)} ns`,
  bytes: (value) => `${groupedFraction.format(value)} bytes`,
  share: (value) => `${groupedFraction.format(value * 100)} %`,
  count: (value) => groupedFraction.format(value),
  'bytes/s': (value) => `${groupedFraction.format(value)} bytes/s`,
  text: String, // an identifier: of an event, a stream
  code: String,
};

/** A value with its unit, rounded. */
export function quantity(value: CellValue, unit: Unit): string {
  if (value === null || value === undefined) return NONE;
  if (typeof value === 'number') return Number.isFinite(value) ? SHORT[unit](value) : NONE;
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  return value;
}

/** A value with its unit and all digits. */
export function quantityExact(value: CellValue, unit: Unit): string {
  if (value === null || value === undefined) return 'not recorded';
  if (typeof value === 'number') return EXACT[unit](value);
  return quantity(value, unit);
}

const LEAST_POINTS = 0.01;

/** A signed change of a fraction in percentage points. */
function points(delta: number): string {
  const size = Math.abs(delta) * 100;
  if (size < LEAST_POINTS) return `< ${LEAST_POINTS} points`;
  return `${signOf(delta)}${significant(size)} points`;
}

const signOf = (value: number): string => (value > 0 ? '+' : '−');

/** A signed change: `−55.0 ms`, `+4.10 points`, with a true minus sign. */
export function change(delta: number, unit: Unit): string {
  if (delta === 0) return '0';
  return unit === 'share' ? points(delta) : signOf(delta) + quantity(Math.abs(delta), unit);
}

/** A signed relative change: `−32.0 %`; empty if there is no base or no change. */
export function relativeChange(before: number, after: number): string {
  if (before === 0 || before === after) return '';
  const size = Math.abs((after - before) / before);
  return size < 0.001 ? '< 0.1 %' : signOf(after - before) + share(size);
}

/** The time of a recording in the local time zone: `2026-01-01 00:05:10`; empty if unknown. */
export function recordedTime(ns: string): string {
  const at = new Date(Number(ns.slice(0, -6)));
  if (ns === '' || Number.isNaN(at.getTime())) return '';
  const two = (value: number): string => String(value).padStart(2, '0');
  const day = [at.getFullYear(), two(at.getMonth() + 1), two(at.getDate())].join('-');
  return `${day} ${[at.getHours(), at.getMinutes(), at.getSeconds()].map(two).join(':')}`;
}

/** A p-value: `p = 0.02`, `p < 0.001`. */
export const chance = (p: number): string =>
  p < 0.001 ? 'p < 0.001' : `p = ${Number(p.toPrecision(2))}`;

/** A text without line breaks between numbers and units. */
export const unbroken = (text: string): string =>
  text.replace(/(\d) (?=(?:%|ns|µs|ms|s|B|[KMGT]iB|[kMGT]B\/s)(?![A-Za-z]))/g, '$1\u00a0');
