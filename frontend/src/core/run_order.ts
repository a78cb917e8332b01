/** The order of runs: the most serious first finding, then its largest likely saving. Pure. */
import type { RunResult, RunState } from '../api/types.gen';
import { compareValues } from './natural';

const SERIOUSNESS = { info: 1, warning: 2, critical: 3 } as const;

/**
 * How much a run asks for attention: the severity of its first finding, plus its likely saving as a fraction of the
 * step. The likely saving is the geometric mean of its two ends, as in the order of the advice. Null without results.
 */
export function urgencyOf(result: RunResult | null): number | null {
  if (!result) return null;
  const { finding } = result;
  if (!finding) return 0;
  const { low_ns = 0, high_ns = 0, share = 0 } = finding.saving ?? {};
  const likely = high_ns > 0 ? share * Math.sqrt(low_ns / high_ns) : 0;
  return SERIOUSNESS[finding.severity] + Math.min(likely, 0.999);
}

/** The run with the most serious and largest saving; undefined before any result. */
export function mostUrgent(runs: readonly RunState[]): RunState | undefined {
  return runs
    .filter(({ result }) => result !== null)
    .toSorted((a, b) => compareValues(urgencyOf(a.result), urgencyOf(b.result), true))[0];
}
