/** The lines of the table of runs: filtered, sorted, grouped by folder, runs open or closed. Pure. */
import type { RunResult, RunState, Runs, Span, Worker } from '../../api/types.gen';
import type { CellValue } from '../../core/format';
import { compareValues } from '../../core/natural';
import { isPending, spansOf } from '../../core/progress';
import { recordedAt } from '../../core/recorded';
import { urgencyOf } from '../../core/run_order';
import type { Matcher } from '../../core/search';
import type { Sort } from '../../state/location';

/** The severity of a run's first finding; `none`: it has no finding. */
export type SeverityFilter = 'any' | 'critical' | 'warning' | 'info' | 'none';

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
  /** Its name; below the name of its folder, the rest of it. */
  readonly label: string;
  /** Its matching files. */
  readonly files: readonly FileLine[];
  readonly isOpen: boolean;
}

/** The heading of the runs of a folder. */
export interface FolderLine {
  readonly kind: 'folder';
  /** Empty for runs that are in no folder. */
  readonly folder: string;
  readonly runs: readonly RunState[];
}

export type Line = FolderLine | RunLine | FileLine;

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

export const severityOf = ({ result }: RunState): SeverityFilter | null =>
  result && (result.finding?.severity ?? 'none');

export const isOfSeverity = (run: RunState, filter: SeverityFilter): boolean =>
  filter === 'any' || severityOf(run) === filter;

/** The folder of a run, from its name; empty for a run in no folder. */
export const folderOf = ({ name }: RunState): string =>
  name.slice(0, Math.max(0, name.lastIndexOf('/')));

/** What a line is sorted by; files have no results. */
interface Sortable {
  readonly name: string;
  readonly spans: readonly Span[];
  readonly result: RunResult | null;
}

/** Damage of files that are read, none as 0; null before any is read. */
function damageLevel(spans: readonly Span[]): number | null {
  const damage = damageOf(spans);
  if (damage) return SEVERITIES.length - SEVERITIES.indexOf(damage);
  return spans.some(({ state }) => state === 'ready') ? 0 : null;
}

const KEYS = {
  name: ({ name }) => name,
  step: ({ result }) => result?.step_ns,
  busy: ({ result }) => result?.busy_share,
  steps: ({ result }) => result?.step_count,
  batch: ({ result }) => result?.batch_size,
  finding: ({ result }) => urgencyOf(result),
  saving: ({ result }) => result?.saving?.share,
  health: ({ spans }) => damageLevel(spans),
  recorded: ({ spans }) => latestOf(spans) || null,
} satisfies Record<string, (of: Sortable) => CellValue>;
export type SortKey = keyof typeof KEYS;

/** The most serious and largest saving first. */
export const USUAL_SORT: Sort = { key: 'finding', descending: true };

const isSortKey = (key: string): key is SortKey => key in KEYS;
const keyOf = ({ key }: Sort): SortKey => (isSortKey(key) ? key : 'finding');

/** Sorted items; equal ones stay in the order of names. */
function inOrder<T>(items: readonly T[], sort: Sort, of: (item: T) => Sortable): T[] {
  const value: (item: Sortable) => CellValue = KEYS[keyOf(sort)];
  // Computes each value once: that of a run's latest file is expensive.
  return items
    .map((item) => ({ item, by: value(of(item)) }))
    .sort((a, b) => compareValues(a.by, b.by, sort.descending))
    .map(({ item }) => item);
}

export interface LineFilter {
  readonly filter: StateFilter;
  readonly severity: SeverityFilter;
  readonly matcher: Matcher;
  readonly sort: Sort;
  /** Ids of the open runs. */
  readonly open: ReadonlySet<string>;
  /** Whether the runs of a folder are below its name. */
  readonly isGrouped: boolean;
}

const matches = (matcher: Matcher, ...texts: readonly (string | undefined)[]): boolean =>
  matcher.kind !== 'test' || texts.some((text) => text !== undefined && matcher.test(text));

/** Whether the name or the first finding of a run matches. */
function isRunMatch({ name, result }: RunState, matcher: Matcher): boolean {
  return matches(matcher, name, result?.finding?.title, result?.finding?.rule);
}

function filesMatching(run: RunState, { filter, severity, matcher }: LineFilter): FileLine[] {
  if (!isOfSeverity(run, severity)) return [];
  const areAll = isRunMatch(run, matcher);
  return filesOf(run).filter(
    ({ worker, span }) =>
      isOf(span, filter) &&
      (areAll || matches(matcher, worker.name, span.file, span.problem?.message)),
  );
}

/** Filtered runs show their files. */
const isFiltered = (run: RunState, { filter, matcher }: LineFilter): boolean =>
  filter !== 'all' || !isRunMatch(run, matcher);

/** The lines of a run; a run of one file has one line. */
function linesOf(run: RunState, files: readonly FileLine[], options: LineFilter): Line[] {
  const isAlone = spansOf(run).length === 1;
  const isOpen = !isAlone && (options.open.has(run.id) || isFiltered(run, options));
  const label = options.isGrouped ? run.name.slice(run.name.lastIndexOf('/') + 1) : run.name;
  const line: RunLine = { kind: 'run', run, label, files, isOpen };
  if (!isOpen) return [line];
  const ordered = inOrder(files, options.sort, ({ worker, span }) => ({
    name: worker.name,
    spans: [span],
    result: null,
  }));
  return [line, ...ordered];
}

/** The items by folder, in the order of the first of each. */
function byFolder<T extends { readonly run: RunState }>(items: readonly T[]): Map<string, T[]> {
  const folders = new Map<string, T[]>();
  for (const item of items) {
    const folder = folderOf(item.run);
    folders.set(folder, [...(folders.get(folder) ?? []), item]);
  }
  return folders;
}

export function linesShown(runs: Runs, options: LineFilter): Line[] {
  const remaining = runs.runs
    .map((run) => ({ run, files: filesMatching(run, options) }))
    .filter(({ files }) => files.length > 0);
  const ordered = inOrder(remaining, options.sort, ({ run, files }) => ({
    name: run.name,
    spans: files.map(({ span }) => span),
    result: run.result,
  }));
  const linesOfAll = (items: typeof ordered): Line[] =>
    items.flatMap(({ run, files }) => linesOf(run, files, options));
  if (!options.isGrouped) return linesOfAll(ordered);
  return [...byFolder(ordered)].flatMap(([folder, items]): Line[] => [
    { kind: 'folder', folder, runs: items.map(({ run }) => run) },
    ...linesOfAll(items),
  ]);
}
