/** The two compared sides: those in the URL, else the shown traces and the previous ones. Pure. */
import type { RunState, Runs, Span, Worker } from '../../api/types.gen';
import { spansOf } from '../../core/progress';
import { recordedAt } from '../../core/recorded';
import type { PageLocation } from '../../state/location';
import type { Patch } from '../../state/navigation';
import { withOptions } from '../../state/option';
import type { Selection } from '../../state/selection';

/** In the URL in place of a name. */
export const ALL = '*';
/** Most traces of a run that is compared as a whole by default. */
const MOST_WHOLE = 16;

/** A run, or one of its workers, or one span. */
export interface Side {
  readonly run: RunState;
  /** Null: all workers. */
  readonly worker: string | null;
  readonly span: string | null;
}

export interface Sides {
  /** Null without a baseline, or if the URL names an unknown run. */
  readonly before: Side | null;
  readonly after: Side;
  /** The reason for a default baseline; empty for one from the URL. */
  readonly reason: string;
  /** An unknown run that the URL names. */
  readonly unknown: string | null;
}

interface Baseline {
  readonly side: Side;
  readonly reason: string;
}

const workerOf = (run: RunState, name: string | null): Worker | undefined =>
  run.workers.find((worker) => worker.name === name);

/** The spans of a side. */
export function spansOfSide({ run, worker, span }: Side): Span[] {
  return run.workers
    .filter(({ name }) => worker === null || name === worker)
    .flatMap(({ spans }) => spans)
    .filter(({ label }) => span === null || label === span);
}

/** Time of the last file of a run, comparable as text. */
export const latestOf = (run: RunState): string =>
  spansOf(run).reduce((latest, { file }) => {
    const at = recordedAt(file);
    return at > latest ? at : latest;
  }, '');

const folderOf = (run: RunState): string => run.name.slice(0, run.name.lastIndexOf('/') + 1);

const isUsable = ({ state }: RunState): boolean => state !== 'unreadable' && state !== 'cancelled';

/** The last run recorded before `moment`, else the first one after it. */
function nearest(runs: readonly RunState[], moment: string): RunState | undefined {
  const byTime = runs.toSorted((a, b) => (latestOf(a) < latestOf(b) ? -1 : 1));
  return byTime.findLast((run) => latestOf(run) < moment) ?? byTime[0];
}

/** The corresponding side of another run: the same worker by name or rank, and the same span. */
export function counterpart({ run, worker, span }: Side, other: RunState): Side {
  if (worker === null) return { run: other, worker: null, span: null };
  const rank = workerOf(run, worker)?.rank ?? null;
  const match =
    workerOf(other, worker) ??
    other.workers.find((candidate) => rank !== null && candidate.rank === rank) ??
    other.workers[0];
  const matchSpan = match?.spans.find(({ label }) => label === span) ?? match?.spans.at(-1);
  return {
    run: other,
    worker: match?.name ?? null,
    span: span === null ? null : (matchSpan?.label ?? null),
  };
}

/** The previous span of the same worker, else the next one. */
function otherSpan(side: Side): Side | null {
  const labels = workerOf(side.run, side.worker)?.spans.map(({ label }) => label) ?? [];
  const at = labels.indexOf(side.span ?? '');
  const label = labels[at - 1] ?? labels[at + 1];
  return at < 0 || label === undefined ? null : { ...side, span: label };
}

/** The default baseline. */
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

type SidePair = Omit<Sides, 'unknown'>;

/** Sides of a single run: its last two spans, else its first two workers. */
function singleRun({ run, worker, span }: Side): SidePair | null {
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

/** Whether the whole run is compared: on request, or by default for a run of few traces. */
function isWhole({ run }: Selection, { worker, options }: PageLocation): boolean {
  if (worker !== null || options.workers === 'one') return false;
  return options.workers === 'all' || spansOf(run).length <= MOST_WHOLE;
}

function afterOf(selection: Selection, location: PageLocation): Side {
  const { run, worker, span } = selection;
  const { options } = location;
  const whole = isWhole(selection, location);
  const isEverySpan =
    location.span === null && (whole ? options.spans !== 'one' : options.spans === 'all');
  return { run, worker: whole ? null : worker.name, span: isEverySpan ? null : span.label };
}

const nameFromUrl = (text: string | null): string | null => (text === ALL ? null : text);

export function sidesOf(runs: Runs, selection: Selection, location: PageLocation): Sides {
  const after = afterOf(selection, location);
  const { baseRun, baseWorker, baseSpan } = location;
  if (baseRun === null) {
    const match = baselineOf(runs, after);
    if (match) return { before: match.side, after, reason: match.reason, unknown: null };
    return { ...(singleRun(after) ?? { before: null, after, reason: '' }), unknown: null };
  }
  const runBy = (key: 'id' | 'name'): RunState | undefined =>
    runs.runs.find((candidate) => candidate[key] === baseRun);
  const run = runBy('id') ?? runBy('name');
  if (!run) return { before: null, after, reason: '', unknown: baseRun };
  const before =
    baseWorker === null && baseSpan === null
      ? counterpart(after, run)
      : { run, worker: nameFromUrl(baseWorker), span: nameFromUrl(baseSpan) };
  return { before, after, reason: '', unknown: null };
}

/** The location with `side` as *before*. */
export const asBefore = ({ run, worker, span }: Side): Patch => ({
  baseRun: run.id,
  baseWorker: worker ?? ALL,
  baseSpan: span ?? ALL,
});

/** The location with `side` as *after*. */
export function asAfter(side: Side, options: PageLocation['options']): Patch {
  const named = (name: string | null): string => (name === null ? 'all' : 'one');
  return {
    run: side.run.id,
    worker: side.worker,
    span: side.span,
    options: withOptions(options, { workers: named(side.worker), spans: named(side.span) }),
  };
}

/** The name of a side, for file names and sentences. */
export const nameOf = ({ run, worker, span }: Side): string =>
  [run.name, worker, span === null ? null : `span ${span}`]
    .filter((word) => word !== null)
    .join(', ');
