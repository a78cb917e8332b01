/** Sentences about a comparison. Pure; its counterpart is `render/comparison_phrases.py`. */
import type { Change, Comparison, Part, Side } from '../../api/types.gen';
import { chance, change, duration, plural, relativeChange } from '../../core/format';

export const deltaOf = (of: Change): number => of.after - of.before;

/** Whether a change is statistically significant. */
export const isSignificant = ({ verdict }: Change): boolean =>
  verdict === 'more' || verdict === 'less';

/** Whether a change was tested and is not significant. */
export const isNoise = ({ verdict }: Change): boolean => verdict === 'same';

/** The result of the significance test of a change, after “is”. */
export function significanceOf(of: Change): string {
  if (of.verdict === 'untested') return 'untested';
  const p = of.p === null ? '' : ` (${chance(of.p)})`;
  return `${isSignificant(of) ? '' : 'not '}statistically significant${p}`;
}

/** Whether changes may be called better or worse. */
export const isComparable = ({ comparability }: Comparison): boolean =>
  comparability.level !== 'not-comparable';

/** The parts that explain a change best: significant ones in its direction, at most two. */
export function mainParts({ step, waterfall }: Comparison): Part[] {
  const delta = deltaOf(step);
  const same = waterfall.filter(
    (part) => Math.sign(deltaOf(part.change)) === Math.sign(delta) && !isNoise(part.change),
  );
  const [first, second] = same.toSorted(
    (a, b) => Math.abs(deltaOf(b.change)) - Math.abs(deltaOf(a.change)),
  );
  if (!first) return [];
  const isMost = Math.abs(deltaOf(first.change)) >= Math.abs(delta) / 2;
  return isMost || !second ? [first] : [first, second];
}

/** The change of the step: `51.4 ms → 28.5 ms`, `−44.5 %`, `mostly DataLoader −22.9 ms`. */
export interface Verdict {
  readonly what: string;
  readonly before: string;
  readonly after: string;
  readonly change: string;
  readonly because: string;
  readonly tone: 'better' | 'worse' | 'same';
}

function becauseOf(comparison: Comparison): string {
  if (isNoise(comparison.step)) return 'not statistically significant';
  const parts = mainParts(comparison).map(
    (part) => `${part.label} ${change(deltaOf(part.change), part.change.unit)}`,
  );
  return (parts.length === 1 ? 'mostly ' : '') + parts.join(' and ');
}

function toneOf(comparison: Comparison): Verdict['tone'] {
  const { step } = comparison;
  const delta = deltaOf(step);
  if (isNoise(step) || delta === 0 || !isComparable(comparison)) return 'same';
  return delta < 0 ? 'better' : 'worse';
}

export function verdictOf(comparison: Comparison): Verdict {
  const { step, before } = comparison;
  const isChanged = deltaOf(step) !== 0;
  const isFair = isComparable(comparison);
  const changed = isChanged ? relativeChange(step.before, step.after) : 'no change';
  return {
    what: before.step_count > 0 ? 'Step' : 'Trace',
    before: duration(step.before),
    after: duration(step.after),
    change: isFair ? changed : 'not comparable',
    because: isChanged && isFair ? becauseOf(comparison) : '',
    tone: toneOf(comparison),
  };
}

/** The verdict as a line of text, to copy. */
export function verdictText(comparison: Comparison): string {
  const { what, before, after, change: changed, because } = verdictOf(comparison);
  return `${what} ${before} → ${after}, ${changed}${because === '' ? '' : `; ${because}`}`;
}

/** The size of a side: `6 steps, 1 trace`. */
export function sizeOf(side: Side): string {
  const traces = plural(side.recording_count, 'trace');
  const workers = side.worker_count > 1 ? ` of ${plural(side.worker_count, 'worker')}` : '';
  if (side.step_count === 0) return `${traces}${workers} without steps`;
  return `${plural(side.step_count, 'step')}, ${traces}${workers}`;
}
