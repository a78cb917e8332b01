/** Steps for keyboard navigation, and the time of a range of steps. Pure. */
import type { StepRow } from '../api/types.gen';

/** The filter: a step, a time, or none. */
export interface Narrowed {
  readonly step: number | null;
  readonly time: { readonly startNs: number; readonly endNs: number } | null;
}

type Steps = readonly StepRow[];

function behind(steps: Steps, { step, time }: Narrowed): StepRow | undefined {
  if (time) return steps.find((row) => row.host_start_ns >= time.endNs) ?? steps.at(-1);
  if (step === null) return steps[0];
  const at = steps.findIndex((row) => row.number === step);
  return at < 0 ? steps.find((row) => row.number > step) : (steps[at + 1] ?? steps[at]);
}

function before(steps: Steps, { step, time }: Narrowed): StepRow | undefined {
  if (time) return steps.findLast((row) => row.host_end_ns <= time.startNs) ?? steps[0];
  if (step === null) return steps.at(-1);
  const at = steps.findIndex((row) => row.number === step);
  return at < 0 ? steps.findLast((row) => row.number < step) : (steps[at - 1] ?? steps[at]);
}

/** The step before (-1) or after (1) the filter, limited to the first and last. */
export function adjacentStep(steps: Steps, narrowed: Narrowed, by: -1 | 1): StepRow | undefined {
  return by === 1 ? behind(steps, narrowed) : before(steps, narrowed);
}

/** The host time of a range of steps, in either order. */
export function timeOfSteps(a: StepRow, b: StepRow): { startNs: number; endNs: number } {
  return {
    startNs: Math.min(a.host_start_ns, b.host_start_ns),
    endNs: Math.max(a.host_end_ns, b.host_end_ns),
  };
}

/** The first and last step of a time that matches steps exactly; null otherwise. */
export function stepsOfTime(
  steps: Steps,
  { startNs, endNs }: { readonly startNs: number; readonly endNs: number },
): readonly [first: number, last: number] | null {
  const first = steps.find((row) => row.host_start_ns === startNs);
  const last = steps.find((row) => row.host_end_ns === endNs);
  return first && last && first.number <= last.number ? [first.number, last.number] : null;
}
