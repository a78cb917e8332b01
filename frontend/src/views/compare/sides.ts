/** The two compared sides: those in the URL, else the shown traces and an earlier run of their family. Pure. */
import type { Candidate, RunState, Runs, Span, Worker } from '../../api/types.gen';
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
  /** Null without a baseline. */
  readonly before: Side | null;
  readonly after: Side;
  /** The reason for a default baseline; empty for one from the URL. */
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

/** Whether two runs are in one folder. */
export const isSibling = (a: RunState, b: RunState): boolean => folderOf(a) === folderOf(b);

const isReadable = ({ state }: RunState): boolean =>
  state !== 'unreadable' && state !== 'cancelled';

/** The other runs of the folder that were recorded before a run, both at known times; the latest first. */
export function earlierInFolder(runs: Runs, run: RunState): RunState[] {
  const moment = latestOf(run);
  return runs.runs
    .filter((other) => other.id !== run.id && isReadable(other) && isSibling(other, run))
    .filter((other) => latestOf(other) !== '' && latestOf(other) < moment)
    .toSorted((a, b) => (latestOf(a) < latestOf(b) ? 1 : -1));
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

/** The side of the span before, and the side of the last span where all spans are selected. */
function earlierSpan({ run, worker, span }: Side): Sides | null {
  const workers = run.workers.filter(({ name }) => worker === null || name === worker);
  const labels = [...new Set(workers.flatMap(({ spans }) => spans.map(({ label }) => label)))];
  const at = span === null ? labels.length - 1 : labels.indexOf(span);
  const [earlier, later] = [labels[at - 1], labels[at]];
  if (earlier === undefined || later === undefined) return null;
  const side = (label: string): Side => ({ run, worker, span: label });
  return { before: side(earlier), after: side(later), reason: 'the span before it' };
}

/** A choice of both sides in one run. */
export interface Choice {
  readonly before: Side;
  readonly after: Side;
}

/** Comparisons in the run: with another span, and of two workers. */
export function choicesInRun(after: Side): Choice[] {
  const { run, worker, span } = after;
  const later = workerOf(run, worker)?.spans.find(({ label }) => label !== span);
  const [first, second] = run.workers;
  const shown = worker ?? second?.name;
  const other = shown === first?.name ? second : first;
  return [
    ...(worker !== null && span !== null && later
      ? [{ before: { ...after, span: later.label }, after }]
      : []),
    ...(shown !== undefined && other && other.name !== shown
      ? [{ before: { run, worker: other.name, span }, after: { run, worker: shown, span } }]
      : []),
  ];
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

/** The sides that the URL names; null if it names no baseline, `unknown` if there is no such run. */
export function namedSides(
  runs: Runs,
  selection: Selection,
  location: PageLocation,
): Sides | 'unknown' | null {
  const { baseRun, baseWorker, baseSpan } = location;
  if (baseRun === null) return null;
  const runBy = (key: 'id' | 'name'): RunState | undefined =>
    runs.runs.find((candidate) => candidate[key] === baseRun);
  const run = runBy('id') ?? runBy('name');
  if (!run) return 'unknown';
  const after = afterOf(selection, location);
  const before =
    baseWorker === null && baseSpan === null
      ? counterpart(after, run)
      : { run, worker: nameFromUrl(baseWorker), span: nameFromUrl(baseSpan) };
  return { before, after, reason: '' };
}

/**
 * The default sides. The baseline is of the same family: the latest run of the same model that was recorded earlier in
 * the same folder, else the span before. Otherwise there is none.
 */
export function defaultSides(
  runs: Runs,
  selection: Selection,
  location: PageLocation,
  candidates: readonly Candidate[],
): Sides {
  const after = afterOf(selection, location);
  const sameModel = new Set(candidates.flatMap((of) => (of.is_same_model ? of.run : [])));
  const earlier = earlierInFolder(runs, after.run).find(({ id }) => sameModel.has(id));
  if (earlier) {
    const reason = 'an earlier run of the same model';
    return { before: counterpart(after, earlier), after, reason };
  }
  return earlierSpan(after) ?? { before: null, after, reason: '' };
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
