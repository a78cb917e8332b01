/** Locations in the timeline. Pure. */
import type { Patch } from './navigation';

/** Time on both sides, as a fraction. */
const AROUND = 0.25;
const LEAST_AROUND_NS = 20_000;

/** A location that shows a time with some context, and optionally selects an event. */
export function timelineLocation(
  startNs: number,
  endNs: number,
  event: number | null | undefined = null,
): Patch {
  const around = Math.max(LEAST_AROUND_NS, Math.round((endNs - startNs) * AROUND));
  const at = `${Math.max(0, startNs - around)}-${endNs + around}`;
  return { view: 'timeline', ...(typeof event === 'number' ? { event } : {}), options: { at } };
}
