/** Which recordings are followed, and how they are called and stand on the axis. Pure. */
import type { RunState, Runs, Span, TrendPoint, Worker } from '../../api/types.gen';
import { recordedAt } from '../../core/recorded';

export type Scope = 'spans' | 'folder' | 'all';
export type Axis = 'order' | 'time';

const folderOf = (name: string): string => name.slice(0, name.lastIndexOf('/') + 1);

/** How many each scope holds, without asking: spans of the run, runs of its folder, all runs. */
export function scopeSizes(runs: Runs, run: RunState): Readonly<Record<Scope, number>> {
  const inFolder = runs.runs.filter(({ name }) => folderOf(name) === folderOf(run.name));
  const spans = Math.max(0, ...run.workers.map((worker) => worker.spans.length));
  return { spans, folder: inFolder.length, all: runs.runs.length };
}

/** The narrowest scope in which there is something to follow. */
export function usualScope({ spans, folder }: Readonly<Record<Scope, number>>): Scope {
  if (spans > 1) return 'spans';
  return folder > 1 ? 'folder' : 'all';
}

export interface Recording {
  readonly run: RunState;
  readonly worker: Worker;
  readonly span: Span;
}

/** The recording behind a point: of several workers the first. */
export function recordingOf(runs: Runs, { run: id, traces }: TrendPoint): Recording | null {
  const run = runs.runs.find((each) => each.id === id);
  for (const worker of run?.workers ?? []) {
    const span = worker.spans.find(({ trace }) => traces.includes(trace));
    if (run && span) return { run, worker, span };
  }
  return null;
}

/** What a point is called: its span, or its run, or both where runs have several spans. */
export function nameOf(point: TrendPoint, scope: Scope, all: readonly TrendPoint[]): string {
  if (scope === 'spans') return `span ${point.span}`;
  const isAlone = all.filter(({ run }) => run === point.run).length === 1;
  return isAlone ? point.run_name : `${point.run_name}, span ${point.span}`;
}

const LONGEST_LABEL = 14;

/** For the axis: the end of a run's name, which tells it from others. */
export function labelOf(point: TrendPoint, scope: Scope): string {
  if (scope === 'spans') return String(point.span);
  const name = scope === 'all' ? point.run_name : point.run_name.split('/').at(-1);
  const text = name ?? '';
  return text.length > LONGEST_LABEL ? `…${text.slice(-LONGEST_LABEL)}` : text;
}

const NANOSECOND_DIGITS = -6;

/** In whole milliseconds: nanoseconds since 1970 are more than a float holds exactly. */
function timesOf(points: readonly TrendPoint[], runs: Runs): number[] {
  return points.map((point) => {
    const found = recordingOf(runs, point);
    return found ? Number(recordedAt(found.span.file).slice(0, NANOSECOND_DIGITS)) : 0;
  });
}

/** Whether every file says when it was recorded, and the points stand in that order. */
export function hasTimes(points: readonly TrendPoint[], runs: Runs): boolean {
  const times = timesOf(points, runs);
  return (
    points.length > 2 &&
    times.every((time, at) => time > 0 && (at === 0 || time >= (times[at - 1] ?? 0)))
  );
}

/** Where points stand from 0 to 1: one after another, or by when they were recorded. */
export function placesOf(points: readonly TrendPoint[], runs: Runs, axis: Axis): number[] {
  const even = points.map((_, at) => (at + 0.5) / points.length);
  if (axis === 'order') return even;
  const times = timesOf(points, runs);
  const least = Math.min(...times);
  const width = Math.max(...times) - least;
  return width > 0 ? times.map((time) => (time - least) / width) : even;
}
