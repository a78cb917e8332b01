/** The pace of reading per run, shared by all components. */
import { useEffect } from 'react';
import { type Pace, paceOf, type Sample, sampleOf, withSample } from '../../core/pace';
import type { Progress } from '../../core/progress';

const seen = new Map<string, readonly Sample[]>();

export function usePace(run: string, progress: Progress): Pace {
  const now = withSample(seen.get(run) ?? [], sampleOf(progress, performance.now()));
  useEffect(() => {
    seen.set(run, now);
  });
  return paceOf(now, progress);
}
