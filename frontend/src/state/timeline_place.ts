/** A time in the timeline, as a place in the page. Pure. */
import type { Patch } from './navigation';

/** Time shown on either side, as a share of it. */
const AROUND = 0.25;
const LEAST_AROUND_NS = 20_000;

/** A time with some of what is before and after it, and the event that is selected in it. */
export function timelinePlace(
  startNs: number,
  endNs: number,
  event: number | null | undefined = null,
): Patch {
  const around = Math.max(LEAST_AROUND_NS, Math.round((endNs - startNs) * AROUND));
  const at = `${Math.max(0, startNs - around)}-${endNs + around}`;
  return { view: 'timeline', ...(typeof event === 'number' ? { event } : {}), options: { at } };
}
