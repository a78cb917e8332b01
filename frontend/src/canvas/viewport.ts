/**
 * The visible part of an axis: time in a timeline, weight in a flame graph. Pure; the unit of a
 * `Range` is the caller's (ns, samples, bytes), pixels are CSS pixels.
 */

export interface Range {
  readonly start: number;
  readonly end: number;
}

export const lengthOf = ({ start, end }: Range): number => end - start;

export const isSameRange = (a: Range, b: Range): boolean => a.start === b.start && a.end === b.end;

/** Units per pixel. */
export const perPx = (view: Range, widthPx: number): number =>
  lengthOf(view) / Math.max(1, widthPx);

export const pxOf = (view: Range, widthPx: number, value: number): number =>
  ((value - view.start) / lengthOf(view)) * widthPx;

export const valueAt = (view: Range, widthPx: number, px: number): number =>
  view.start + (px / Math.max(1, widthPx)) * lengthOf(view);

/** A view of the same length inside the bounds, shortened or extended where necessary. */
export function clamped(view: Range, bounds: Range, least = 0): Range {
  const whole = lengthOf(bounds);
  const length = Math.min(whole, Math.max(Math.min(least, whole), lengthOf(view)));
  const middle = (view.start + view.end) / 2;
  const preferred = length === lengthOf(view) ? view.start : middle - length / 2;
  const start = Math.min(bounds.end - length, Math.max(bounds.start, preferred));
  return { start, end: start + length };
}

interface Zoom {
  /** Below 1 zooms in, above 1 zooms out. */
  readonly factor: number;
  /** The value that keeps its position on the screen. */
  readonly at: number;
  readonly least?: number;
}

export function zoomed(view: Range, bounds: Range, { factor, at, least = 0 }: Zoom): Range {
  const length = lengthOf(view);
  const next = Math.min(lengthOf(bounds), Math.max(least, length * factor));
  const share = (at - view.start) / length;
  const start = at - share * next;
  return clamped({ start, end: start + next }, bounds, least);
}

export const panned = (view: Range, bounds: Range, by: number): Range =>
  clamped({ start: view.start + by, end: view.end + by }, bounds);

/** A view of a whole range, with a margin as a fraction of its length on both sides. */
export function fitted(
  target: Range,
  bounds: Range,
  { margin = 0.05, least = 0 }: { readonly margin?: number; readonly least?: number } = {},
): Range {
  const length = Math.max(lengthOf(target) * (1 + 2 * margin), least);
  const middle = (target.start + target.end) / 2;
  return clamped({ start: middle - length / 2, end: middle + length / 2 }, bounds, least);
}

/**
 * The view, moved as little as possible to include the target, and zoomed out if the target is
 * longer.
 */
export function revealed(view: Range, target: Range, bounds: Range): Range {
  if (target.start >= view.start && target.end <= view.end) return view;
  if (lengthOf(target) > lengthOf(view)) return fitted(target, bounds);
  const middle = (target.start + target.end) / 2;
  return clamped({ start: middle - lengthOf(view) / 2, end: middle + lengthOf(view) / 2 }, bounds);
}

/**
 * A view between two views, 0 to 1; lengths change by a constant ratio, so that a long zoom looks
 * even.
 */
export function between(from: Range, to: Range, share: number): Range {
  if (share >= 1) return to;
  if (share <= 0) return from;
  const [a, b] = [lengthOf(from), lengthOf(to)];
  if (a <= 0 || b <= 0) return to;
  const length = a * (b / a) ** share;
  // The start moves with the change of length: zooms keep their fixed point.
  const done = a === b ? share : (length - a) / (b - a);
  const start = from.start + (to.start - from.start) * done;
  return { start, end: start + length };
}

/** Easing: slow at both ends. */
export const eased = (share: number): number =>
  share < 0.5 ? 4 * share ** 3 : 1 - (2 - 2 * share) ** 3 / 2;
