/** Which step a key or a button leads to, and the time that a range of steps takes. Pure. */
import type { StepRow } from '../api/types.gen';

/** What is narrowed to: a step, a time, or nothing. */
export interface Narrowed {
  readonly step: number | null;
  readonly time: { readonly startNs: number; readonly endNs: number } | null;
}

type Steps = readonly StepRow[];

function behind(steps: Steps, { step, time }: Narrowed): StepRow | undefined {
  if (time) return steps.find((each) => each.host_start_ns >= time.endNs) ?? steps.at(-1);
  if (step === null) return steps[0];
  const at = steps.findIndex((each) => each.number === step);
  return at < 0 ? steps.find((each) => each.number > step) : (steps[at + 1] ?? steps[at]);
}

function before(steps: Steps, { step, time }: Narrowed): StepRow | undefined {
  if (time) return steps.findLast((each) => each.host_end_ns <= time.startNs) ?? steps[0];
  if (step === null) return steps.at(-1);
  const at = steps.findIndex((each) => each.number === step);
  return at < 0 ? steps.findLast((each) => each.number < step) : (steps[at - 1] ?? steps[at]);
}

/** The step before (-1) or behind (1) what is narrowed to; the last stays where there is none. */
export function stepBeside(steps: Steps, narrowed: Narrowed, by: -1 | 1): StepRow | undefined {
  return by === 1 ? behind(steps, narrowed) : before(steps, narrowed);
}

/** The host's time from one step to another, both in it, in either order. */
export function timeOfSteps(a: StepRow, b: StepRow): { startNs: number; endNs: number } {
  return {
    startNs: Math.min(a.host_start_ns, b.host_start_ns),
    endNs: Math.max(a.host_end_ns, b.host_end_ns),
  };
}

/** The steps that a time holds from begin to end, where it is exactly theirs; null: it is another time. */
export function stepsOfTime(
  steps: Steps,
  { startNs, endNs }: { readonly startNs: number; readonly endNs: number },
): readonly [first: number, last: number] | null {
  const first = steps.find((each) => each.host_start_ns === startNs);
  const last = steps.find((each) => each.host_end_ns === endNs);
  return first && last && first.number <= last.number ? [first.number, last.number] : null;
}
