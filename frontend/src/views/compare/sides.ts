/** Which two sides are compared: what the URL says, else the recording on show and the one before it. Pure. */
import type { RunState, Runs, Span, Worker } from '../../api/types.gen';
import { spansOf } from '../../core/progress';
import { recordedAt } from '../../core/recorded';
import type { PageLocation } from '../../state/location';
import type { Patch } from '../../state/navigation';
import { withOption } from '../../state/option';
import type { Selection } from '../../state/selection';

/** In the URL in place of a name. */
export const ALL = '*';
/** A run of more recordings is compared as a whole only where that is asked for. */
const MOST_UNASKED = 16;

/** A run, or one of its workers, or one span. */
export interface Side {
  readonly run: RunState;
  /** Null: all of them. */
  readonly worker: string | null;
  readonly span: string | null;
}

export interface Sides {
  /** Null where there is nothing to compare with, or the URL names a run that is not there. */
  readonly before: Side | null;
  readonly after: Side;
  /** How `before` was chosen, where nobody did; empty where somebody did. */
  readonly reason: string;
  /** A run that the URL names and that is not there. */
  readonly unknown: string | null;
}

interface Baseline {
  readonly side: Side;
  readonly reason: string;
}

const workerOf = (run: RunState, name: string | null): Worker | undefined =>
  run.workers.find((worker) => worker.name === name);

/** The recordings of a side. */
export function recordingsOf({ run, worker, span }: Side): Span[] {
  return run.workers
    .filter((each) => worker === null || each.name === worker)
    .flatMap((each) => each.spans)
    .filter((each) => span === null || each.label === span);
}

/** When the last of a run's files was recorded, to compare as text. */
export const latestOf = (run: RunState): string =>
  spansOf(run).reduce((latest, { file }) => {
    const at = recordedAt(file);
    return at > latest ? at : latest;
  }, '');

const folderOf = (run: RunState): string => run.name.slice(0, run.name.lastIndexOf('/') + 1);

const isUsable = ({ state }: RunState): boolean => state !== 'unreadable' && state !== 'cancelled';

/** The one that was recorded last before `moment`, else the first after it. */
function nearest(runs: readonly RunState[], moment: string): RunState | undefined {
  const byTime = runs.toSorted((a, b) => (latestOf(a) < latestOf(b) ? -1 : 1));
  return byTime.findLast((run) => latestOf(run) < moment) ?? byTime[0];
}

/** In another run, what stands for a side: the same worker by name or by rank, and the same span. */
export function counterpart({ run, worker, span }: Side, other: RunState): Side {
  if (worker === null) return { run: other, worker: null, span: null };
  const rank = workerOf(run, worker)?.rank ?? null;
  const found =
    workerOf(other, worker) ??
    other.workers.find((each) => rank !== null && each.rank === rank) ??
    other.workers[0];
  const own = found?.spans.find(({ label }) => label === span) ?? found?.spans.at(-1);
  return {
    run: other,
    worker: found?.name ?? null,
    span: span === null ? null : (own?.label ?? null),
  };
}

/** The recording of the same worker before a span, else the one behind it. */
function otherSpan(side: Side): Side | null {
  const labels = workerOf(side.run, side.worker)?.spans.map(({ label }) => label) ?? [];
  const at = labels.indexOf(side.span ?? '');
  const label = labels[at - 1] ?? labels[at + 1];
  return at < 0 || label === undefined ? null : { ...side, span: label };
}

/** What the page compares with where nobody has said it. */
export function baselineOf(runs: Runs, after: Side): Baseline | null {
  const others = runs.runs.filter((run) => run.id !== after.run.id && isUsable(run));
  const moment = latestOf(after.run);
  const inFolder = others.filter((run) => folderOf(run) === folderOf(after.run));
  const sibling = folderOf(after.run) === '' ? undefined : nearest(inFolder, moment);
  if (sibling) {
    const isBefore = latestOf(sibling) < moment;
    const reason = isBefore ? 'the run before it in its folder' : 'the other run in its folder';
    return { side: counterpart(after, sibling), reason };
  }
  const span = otherSpan(after);
  if (span) return { side: span, reason: 'another span of the same worker' };
  const previous = nearest(others, moment);
  if (!previous) return null;
  const reason = latestOf(previous) < moment ? 'the run recorded before it' : 'another run';
  return { side: counterpart(after, previous), reason };
}

type Within = Omit<Sides, 'unknown'>;

/** In a run that is alone: its last span beside the one before, else its second worker beside the first. */
function within({ run, worker, span }: Side): Within | null {
  const workers = run.workers.filter(({ name }) => worker === null || name === worker);
  const labels = [...new Set(workers.flatMap(({ spans }) => spans.map(({ label }) => label)))];
  const [earlier, later] = labels.slice(-2);
  if (span === null && earlier !== undefined && later !== undefined) {
    const side = (label: string): Side => ({ run, worker, span: label });
    return { before: side(earlier), after: side(later), reason: 'the span before it' };
  }
  const [first, second] = run.workers;
  if (!first || !second) return null;
  const side = (name: string): Side => ({ run, worker: name, span });
  const reason = 'another worker of the run';
  if (worker === first.name) return { before: side(second.name), after: side(worker), reason };
  return { before: side(first.name), after: side(worker ?? second.name), reason };
}

/** Whole where that was asked for, or where nobody chose a worker of a run of a few recordings. */
function isWhole({ run }: Selection, { worker, options }: PageLocation): boolean {
  if (worker !== null || options.workers === 'one') return false;
  return options.workers === 'all' || spansOf(run).length <= MOST_UNASKED;
}

function afterOf(selection: Selection, location: PageLocation): Side {
  const { run, worker, span } = selection;
  const { options } = location;
  const whole = isWhole(selection, location);
  const isEverySpan =
    location.span === null && (whole ? options.spans !== 'one' : options.spans === 'all');
  return { run, worker: whole ? null : worker.name, span: isEverySpan ? null : span.label };
}

const chosen = (text: string | null): string | null => (text === ALL ? null : text);

export function sidesOf(runs: Runs, selection: Selection, location: PageLocation): Sides {
  const after = afterOf(selection, location);
  const { baseRun, baseWorker, baseSpan } = location;
  if (baseRun === null) {
    const found = baselineOf(runs, after);
    if (found) return { before: found.side, after, reason: found.reason, unknown: null };
    return { ...(within(after) ?? { before: null, after, reason: '' }), unknown: null };
  }
  const named = (key: 'id' | 'name'): RunState | undefined =>
    runs.runs.find((each) => each[key] === baseRun);
  const run = named('id') ?? named('name');
  if (!run) return { before: null, after, reason: '', unknown: baseRun };
  const before =
    baseWorker === null && baseSpan === null
      ? counterpart(after, run)
      : { run, worker: chosen(baseWorker), span: chosen(baseSpan) };
  return { before, after, reason: '', unknown: null };
}

/** Where the page goes for `side` to be *before*. */
export const asBefore = ({ run, worker, span }: Side): Patch => ({
  baseRun: run.id,
  baseWorker: worker ?? ALL,
  baseSpan: span ?? ALL,
});

/** Where the page goes for `side` to be *after*: what it shows. */
export function asAfter(side: Side, options: PageLocation['options']): Patch {
  const workers = withOption(options, 'workers', side.worker === null ? 'all' : 'one');
  return {
    run: side.run.id,
    worker: side.worker,
    span: side.span,
    options: withOption(workers, 'spans', side.span === null ? 'all' : 'one'),
  };
}

/** A side in a few words, for file names and sentences. */
export const nameOf = ({ run, worker, span }: Side): string =>
  [run.name, worker, span === null ? null : `span ${span}`]
    .filter((word) => word !== null)
    .join(', ');
