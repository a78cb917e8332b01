/** The points of the trends: scope, names, positions on the axis. Pure. */
import type { RunState, Runs, TrendPoint } from '../../api/types.gen';
import { recordedAt } from '../../core/recorded';
import type { Selection } from '../../state/selection';

export type Scope = 'spans' | 'folder' | 'all';
export type Axis = 'order' | 'time';

const folderOf = (name: string): string => name.slice(0, name.lastIndexOf('/') + 1);

/** The sizes of the scopes: spans of the run, runs of its folder, all runs. */
export function scopeSizes(runs: Runs, run: RunState): Readonly<Record<Scope, number>> {
  const inFolder = runs.runs.filter(({ name }) => folderOf(name) === folderOf(run.name));
  const spans = Math.max(0, ...run.workers.map((worker) => worker.spans.length));
  return { spans, folder: inFolder.length, all: runs.runs.length };
}

/** The narrowest scope with several traces. */
export function defaultScope({ spans, folder }: Readonly<Record<Scope, number>>): Scope {
  if (spans > 1) return 'spans';
  return folder > 1 ? 'folder' : 'all';
}

/** The trace of a point, of several workers the first. */
export function selectionOf(runs: Runs, { run: id, traces }: TrendPoint): Selection | null {
  const run = runs.runs.find((other) => other.id === id);
  for (const worker of run?.workers ?? []) {
    const span = worker.spans.find(({ trace }) => traces.includes(trace));
    if (run && span) return { run, worker, span };
  }
  return null;
}

/** The name of a point: its span, its run, or both if runs have several spans. */
export function nameOf(point: TrendPoint, scope: Scope, all: readonly TrendPoint[]): string {
  if (scope === 'spans') return `span ${point.span}`;
  const isAlone = all.filter(({ run }) => run === point.run).length === 1;
  return isAlone ? point.run_name : `${point.run_name}, span ${point.span}`;
}

const LONGEST_LABEL = 14;

/** The label on the axis: the distinctive end of the name. */
export function labelOf(point: TrendPoint, scope: Scope): string {
  if (scope === 'spans') return String(point.span);
  const name = scope === 'all' ? point.run_name : point.run_name.split('/').at(-1);
  const text = name ?? '';
  return text.length > LONGEST_LABEL ? `…${text.slice(-LONGEST_LABEL)}` : text;
}

const NANOSECOND_DIGITS = -6;

/** Times in ms: a float cannot hold nanoseconds since 1970 exactly. */
function timesOf(points: readonly TrendPoint[], runs: Runs): number[] {
  return points.map((point) => {
    const selection = selectionOf(runs, point);
    return selection ? Number(recordedAt(selection.span.file).slice(0, NANOSECOND_DIGITS)) : 0;
  });
}

/** Whether all files have a time, in the order of the points. */
export function hasTimes(points: readonly TrendPoint[], runs: Runs): boolean {
  const times = timesOf(points, runs);
  return (
    points.length > 2 &&
    times.every((time, at) => time > 0 && (at === 0 || time >= (times[at - 1] ?? 0)))
  );
}

/** Positions from 0 to 1, evenly spaced or by time. */
export function positionsOf(points: readonly TrendPoint[], runs: Runs, axis: Axis): number[] {
  const even = points.map((_, at) => (at + 0.5) / points.length);
  if (axis === 'order') return even;
  const times = timesOf(points, runs);
  const least = Math.min(...times);
  const width = Math.max(...times) - least;
  return width > 0 ? times.map((time) => (time - least) / width) : even;
}
