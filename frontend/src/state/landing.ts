/** The view that a link without a view opens. Pure. */
import type { Runs } from '../api/types.gen';

/** Runs for several runs, Advice for one; null before that is certain. */
export function landingView({ runs, scanning }: Runs): string | null {
  if (runs.length > 1) return 'runs';
  return scanning || runs.length === 0 ? null : 'advice';
}
