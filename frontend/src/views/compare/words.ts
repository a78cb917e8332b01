/** What a comparison says, in words. Pure; `render/comparison_phrases.py` is its twin. */
import type { Change, Comparison, Part, Row, Side } from '../../api/types.gen';
import { chance, change, duration, plural, relativeChange } from '../../core/format';

export const deltaOf = (of: Change): number => of.after - of.before;

/** Whether a change is told from noise. */
export const isReal = ({ verdict }: Change): boolean => verdict === 'more' || verdict === 'less';

/** A figure that was not tested is neither told from noise nor called noise. */
export const isNoise = ({ verdict }: Change): boolean => verdict === 'same';

/** How sure a change is. */
export function sureness(of: Change): string {
  if (of.verdict === 'untested') return 'too few steps to tell it from noise';
  const p = of.p === null ? '' : ` (${chance(of.p)})`;
  return `${isReal(of) ? 'told' : 'not told'} from noise${p}`;
}

/** The parts that explain a change best: those that go its way and are told from noise, at most two. */
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

/** What became of the step: `51.4 ms → 28.5 ms`, `−44.5 %`, `mostly DataLoader −22.9 ms`. */
export interface Verdict {
  readonly what: string;
  readonly before: string;
  readonly after: string;
  readonly change: string;
  readonly because: string;
  readonly tone: 'better' | 'worse' | 'same';
}

function becauseOf(comparison: Comparison): string {
  if (isNoise(comparison.step)) return 'not told from noise';
  const parts = mainParts(comparison).map(
    (part) => `${part.label} ${change(deltaOf(part.change), part.change.unit)}`,
  );
  return (parts.length === 1 ? 'mostly ' : '') + parts.join(' and ');
}

function toneOf({ step }: Comparison): Verdict['tone'] {
  const delta = deltaOf(step);
  if (isNoise(step) || delta === 0) return 'same';
  return delta < 0 ? 'better' : 'worse';
}

export function verdictOf(comparison: Comparison): Verdict {
  const { step, before } = comparison;
  const isChanged = deltaOf(step) !== 0;
  return {
    what: before.step_count > 0 ? 'Step' : 'Recording',
    before: duration(step.before),
    after: duration(step.after),
    change: isChanged ? relativeChange(step.before, step.after) : 'no change',
    because: isChanged ? becauseOf(comparison) : '',
    tone: toneOf(comparison),
  };
}

/** The verdict as a line of text, to copy. */
export function verdictText(comparison: Comparison): string {
  const { what, before, after, change: changed, because } = verdictOf(comparison);
  return `${what} ${before} → ${after}, ${changed}${because === '' ? '' : `; ${because}`}`;
}

/** What a side is made of: `6 steps, 1 recording`. */
export function madeOf(side: Side): string {
  const recordings = plural(side.recording_count, 'recording');
  const workers = side.worker_count > 1 ? ` of ${plural(side.worker_count, 'worker')}` : '';
  if (side.step_count === 0) return `${recordings}${workers} without steps`;
  return `${plural(side.step_count, 'step')}, ${recordings}${workers}`;
}

export type Status = Row['status'];

export const STATUS_WORDS: Readonly<Record<Status, string>> = {
  added: 'new',
  gone: 'gone',
  slower: 'slower',
  faster: 'faster',
  'other-calls': 'other calls',
  same: 'within noise',
  untested: 'untested',
};
