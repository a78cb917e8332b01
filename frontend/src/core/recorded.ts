/** The time of a recording from its file name. Pure. */

/** `<worker>.<time>.pt.trace.json[.gz]`; shorter numbers are counters. */
const TIME = /\.(\d{10,19})\.pt\.trace\.json(?:\.gz)?$/;
const NANOSECOND_DIGITS = 19;

/** Nanoseconds since 1970 as 19 digits; empty if the name has no time. */
export function recordedAt(file: string): string {
  // Versions of the profiler wrote milliseconds, microseconds or nanoseconds.
  return TIME.exec(file)?.[1]?.padEnd(NANOSECOND_DIGITS, '0') ?? '';
}
