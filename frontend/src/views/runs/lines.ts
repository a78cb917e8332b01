/** The lines of the table of runs: filtered, sorted, runs open or closed. Pure. */
import type { RunState, Runs, Span, Worker } from '../../api/types.gen';
import type { CellValue } from '../../core/format';
import { compareValues } from '../../core/natural';
import { isPending, spansOf } from '../../core/progress';
import { recordedAt } from '../../core/recorded';
import type { Matcher } from '../../core/search';
import type { Sort } from '../../state/location';

export type StateFilter = 'all' | 'ready' | 'pending' | 'unreadable' | 'cancelled' | 'damaged';

export interface FileLine {
  readonly kind: 'file';
  readonly run: RunState;
  readonly worker: Worker;
  readonly span: Span;
}

export interface RunLine {
  readonly kind: 'run';
  readonly run: RunState;
  /** Its matching files. */
  readonly files: readonly FileLine[];
  readonly isOpen: boolean;
}

export type Line = RunLine | FileLine;

const IS_OF: Readonly<Record<StateFilter, (span: Span) => boolean>> = {
  all: () => true,
  ready: ({ state }) => state === 'ready',
  pending: isPending,
  unreadable: ({ state }) => state === 'unreadable',
  cancelled: ({ state }) => state === 'cancelled',
  damaged: ({ damage }) => damage !== null,
};

export const isOf = (span: Span, filter: StateFilter): boolean => IS_OF[filter](span);

export const filesOf = (run: RunState): FileLine[] =>
  run.workers.flatMap((worker) =>
    worker.spans.map((span): FileLine => ({ kind: 'file', run, worker, span })),
  );

/** Time of the last of some files, comparable as text. */
export const latestOf = (spans: readonly Span[]): string =>
  spans.reduce((filesMatching, { file }) => {
    const at = recordedAt(file);
    return at > filesMatching ? at : filesMatching;
  }, '');

export const bytesOf = (spans: readonly Span[]): number =>
  spans.reduce((sum, { file_bytes }) => sum + file_bytes, 0);

/** Total events of the read files; null if none was read. */
export function eventsOf(spans: readonly Span[]): number | null {
  const counts = spans.flatMap(({ events }) => (events === null ? [] : [events]));
  return counts.length === 0 ? null : counts.reduce((sum, events) => sum + events, 0);
}

const SEVERITIES = ['critical', 'warning', 'info'] as const;

/** The worst damage of some files. */
export const damageOf = (spans: readonly Span[]): Span['damage'] =>
  SEVERITIES.find((severity) => spans.some(({ damage }) => damage === severity)) ?? null;

/** What asks for attention comes first. */
const STATES: readonly Span['state'][] = ['unreadable', 'cancelled', 'reading', 'queued', 'ready'];

const SORT_KEYS = ['name', 'state', 'size', 'events', 'recorded'] as const;
export type SortKey = (typeof SORT_KEYS)[number];

export const USUAL_SORT: Sort = { key: 'recorded', descending: true };

const KEYS: Readonly<Record<SortKey, (spans: readonly Span[], name: string) => CellValue>> = {
  name: (_, name) => name,
  state: (spans) => Math.min(...spans.map(({ state }) => STATES.indexOf(state))),
  size: bytesOf,
  events: eventsOf,
  recorded: latestOf,
};

const keyOf = ({ key }: Sort): SortKey => SORT_KEYS.find((counts) => counts === key) ?? 'recorded';

/** Sorted items; equal ones stay in the order of names. */
function inOrder<T>(
  items: readonly T[],
  sort: Sort,
  of: (item: T) => readonly [readonly Span[], string],
): T[] {
  const value = KEYS[keyOf(sort)];
  // Computes each value once: that of a run's latest file is expensive.
  return items
    .map((item) => ({ item, by: value(...of(item)) }))
    .sort((a, b) => compareValues(a.by, b.by, sort.descending))
    .map(({ item }) => item);
}

export interface LineFilter {
  readonly filter: StateFilter;
  readonly matcher: Matcher;
  readonly sort: Sort;
  /** Ids of the open runs. */
  readonly open: ReadonlySet<string>;
}

const matches = (matcher: Matcher, ...texts: readonly (string | undefined)[]): boolean =>
  matcher.kind !== 'test' || texts.some((text) => text !== undefined && matcher.test(text));

function filesMatching(run: RunState, { filter, matcher }: LineFilter): FileLine[] {
  const isRunMatch = matches(matcher, run.name);
  return filesOf(run).filter(
    ({ worker, span }) =>
      isOf(span, filter) &&
      (isRunMatch || matches(matcher, worker.name, span.file, span.problem?.message)),
  );
}

/** Filtered runs show their files. */
const isFiltered = (run: RunState, { filter, matcher }: LineFilter): boolean =>
  filter !== 'all' || !matches(matcher, run.name);

/** The lines of a run; a run of one file has one line. */
function linesOf(run: RunState, files: readonly FileLine[], options: LineFilter): Line[] {
  const isAlone = spansOf(run).length === 1;
  const isOpen = !isAlone && (options.open.has(run.id) || isFiltered(run, options));
  const line: RunLine = { kind: 'run', run, files, isOpen };
  if (!isOpen) return [line];
  return [line, ...inOrder(files, options.sort, ({ worker, span }) => [[span], worker.name])];
}

export function linesShown(runs: Runs, options: LineFilter): Line[] {
  const remaining = runs.runs
    .map((run) => ({ run, files: filesMatching(run, options) }))
    .filter(({ files }) => files.length > 0);
  const ordered = inOrder(remaining, options.sort, ({ run, files }) => [
    files.map(({ span }) => span),
    run.name,
  ]);
  return ordered.flatMap(({ run, files }) => linesOf(run, files, options));
}
