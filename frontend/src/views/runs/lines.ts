/** From what was found to the lines of the table: filtered, in order, runs open or closed. Pure. */
import type { RunState, Runs, Span, Worker } from '../../api/types.gen';
import type { CellValue } from '../../core/format';
import { natural } from '../../core/natural';
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
  /** Its files that are not filtered out. */
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

/** When the last of some files was recorded, to compare as text. */
export const latestOf = (spans: readonly Span[]): string =>
  spans.reduce((found, { file }) => {
    const at = recordedAt(file);
    return at > found ? at : found;
  }, '');

export const bytesOf = (spans: readonly Span[]): number =>
  spans.reduce((sum, { file_bytes }) => sum + file_bytes, 0);

/** Events of those that were read; null where none was. */
export function eventsOf(spans: readonly Span[]): number | null {
  const known = spans.flatMap(({ events }) => (events === null ? [] : [events]));
  return known.length === 0 ? null : known.reduce((sum, each) => sum + each, 0);
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

const keyOf = ({ key }: Sort): SortKey => SORT_KEYS.find((known) => known === key) ?? 'recorded';

/** What is not known comes last either way. */
function compared(a: CellValue, b: CellValue, descending: boolean): number {
  if (a === null || b === null) return Number(a === null) - Number(b === null);
  const order =
    typeof a === 'number' && typeof b === 'number' ? a - b : natural.compare(String(a), String(b));
  return descending ? -order : order;
}

/** In the wanted order; equals keep the order of names, which they come in. */
function inOrder<T>(
  items: readonly T[],
  sort: Sort,
  of: (item: T) => readonly [readonly Span[], string],
): T[] {
  const value = KEYS[keyOf(sort)];
  // Each value once: of thousands of files a comparison is cheap, a run's latest file is not.
  return items
    .map((item) => ({ item, by: value(...of(item)) }))
    .sort((a, b) => compared(a.by, b.by, sort.descending))
    .map(({ item }) => item);
}

export interface Wanted {
  readonly filter: StateFilter;
  readonly matcher: Matcher;
  readonly sort: Sort;
  /** Runs that are open, by id. */
  readonly open: ReadonlySet<string>;
}

const matches = (matcher: Matcher, ...texts: readonly (string | undefined)[]): boolean =>
  matcher.kind !== 'test' || texts.some((text) => text !== undefined && matcher.test(text));

function found(run: RunState, { filter, matcher }: Wanted): FileLine[] {
  const isRunFound = matches(matcher, run.name);
  return filesOf(run).filter(
    ({ worker, span }) =>
      isOf(span, filter) &&
      (isRunFound || matches(matcher, worker.name, span.file, span.problem?.message)),
  );
}

/** What is filtered is shown file by file: files are what was looked for. */
const isFiltered = (run: RunState, { filter, matcher }: Wanted): boolean =>
  filter !== 'all' || !matches(matcher, run.name);

/** A run of one file is one line. */
function linesOf(run: RunState, files: readonly FileLine[], wanted: Wanted): Line[] {
  const isAlone = spansOf(run).length === 1;
  const isOpen = !isAlone && (wanted.open.has(run.id) || isFiltered(run, wanted));
  const line: RunLine = { kind: 'run', run, files, isOpen };
  if (!isOpen) return [line];
  return [line, ...inOrder(files, wanted.sort, ({ worker, span }) => [[span], worker.name])];
}

export function linesShown(runs: Runs, wanted: Wanted): Line[] {
  const kept = runs.runs
    .map((run) => ({ run, files: found(run, wanted) }))
    .filter(({ files }) => files.length > 0);
  const ordered = inOrder(kept, wanted.sort, ({ run, files }) => [
    files.map(({ span }) => span),
    run.name,
  ]);
  return ordered.flatMap(({ run, files }) => linesOf(run, files, wanted));
}
