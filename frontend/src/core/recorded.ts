/** When a file was recorded, as far as its name says. Pure. */

/** `<worker>.<time>.pt.trace.json[.gz]`; a shorter number is a count, not a time. */
const TIME = /\.(\d{10,19})\.pt\.trace\.json(?:\.gz)?$/;
const NANOSECOND_DIGITS = 19;

/** Nanoseconds since 1970 in 19 digits, to compare as text; empty where the name has no time. */
export function recordedAt(file: string): string {
  // The profiler has written milliseconds, microseconds and nanoseconds over the years.
  return TIME.exec(file)?.[1]?.padEnd(NANOSECOND_DIGITS, '0') ?? '';
}
