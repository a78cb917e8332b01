/** Entries of the command palette. Pure. */
import type {
  Names,
  NamesOfKind,
  Outcome,
  Overview,
  RunReport,
  RunState,
  Runs,
  Tables,
} from '../../api/types.gen';
import { duration, plural } from '../../core/format';
import { shortName } from '../../core/names';
import type { Patch } from '../../state/navigation';
import type { Selection } from '../../state/selection';
import type { View } from '../../views/view';
import type { Command } from '../../widgets/commands';
import type { IconName } from '../../widgets/icon';

export interface Entry {
  /** Constant across sessions, for recently used entries. */
  readonly key: string;
  /** The heading of the group. */
  readonly kind: string;
  readonly icon: IconName;
  readonly label: string;
  readonly note: string;
  /** Further text that matches, in lower case. */
  readonly about: string;
  readonly to: Patch | null;
  readonly run: (() => void) | null;
}

type Given = Pick<Entry, 'key' | 'kind' | 'icon' | 'label'> & Partial<Entry>;

const entry = (given: Given): Entry => ({
  note: '',
  about: given.kind.toLowerCase(),
  to: null,
  run: null,
  ...given,
});

export function commandEntries(commands: readonly Command[]): Entry[] {
  return commands.map(({ id, label, note = '', run }) =>
    entry({ key: `do ${id}`, kind: 'Actions', icon: 'arrow', label, note, run }),
  );
}

export function viewEntries(views: readonly View[], backTo: (view: string) => Patch): Entry[] {
  return views.map(({ id, title, icon, key }) =>
    entry({
      key: `view ${id}`,
      kind: 'Views',
      icon,
      label: title,
      note: `g ${key}`,
      to: backTo(id),
    }),
  );
}

function runNote({ state, workers }: RunState): string {
  if (state !== 'ready') return state;
  return workers.length > 1 ? plural(workers.length, 'worker') : '';
}

export function runEntries({ runs }: Runs): Entry[] {
  return runs.map((run) =>
    entry({
      key: `run ${run.id}`,
      kind: 'Runs',
      icon: 'runs',
      label: run.name,
      note: runNote(run),
      to: { run: run.id },
    }),
  );
}

type Worker = RunState['workers'][number];

function entriesOfWorker(run: RunState, { name, rank, spans }: Worker): Entry[] {
  const label = rank === null ? name : `Rank ${rank}`;
  const to: Patch = { run: run.id, worker: name, span: null };
  const worker = entry({
    key: `worker ${run.id} ${name}`,
    kind: 'Ranks and workers',
    icon: 'distributed',
    label,
    note: rank === null ? '' : name,
    about: `worker rank ${name.toLowerCase()}`,
    to,
  });
  if (spans.length < 2) return [worker];
  const spanEntries = spans.map((span) =>
    entry({
      key: `span ${span.trace}`,
      kind: 'Spans',
      icon: 'file',
      label: `${label}, span ${span.label}`,
      note: span.file,
      to: { ...to, span: span.label },
    }),
  );
  return [worker, ...spanEntries];
}

/** Workers by rank, with their spans if there are several. */
export function workerEntries(run: RunState): Entry[] {
  const isAlone = run.workers.length < 2 && (run.workers[0]?.spans.length ?? 0) < 2;
  return isAlone ? [] : run.workers.flatMap((worker) => entriesOfWorker(run, worker));
}

export function stepEntries({ steps }: Overview): Entry[] {
  return steps.map(({ number, duration_ns }) =>
    entry({
      key: `step ${number}`,
      kind: 'Steps',
      icon: 'filter',
      label: `Step ${number}`,
      note: duration(duration_ns),
      about: 'steps filter',
      to: { step: number, time: null },
    }),
  );
}

/** Findings by rule, those of the shown trace first. */
export function findingEntries({ outcomes, merged }: RunReport, { span }: Selection): Entry[] {
  const byRule = new Map<string, Outcome>();
  for (const outcome of [...outcomes, ...merged.map((finding) => finding.outcome)]) {
    if (outcome.status !== 'found') continue;
    if (!byRule.has(outcome.rule) || outcome.trace === span.trace)
      byRule.set(outcome.rule, outcome);
  }
  return [...byRule.values()].map(({ rule, title, severity, worker, span: label, trace }) => {
    const isHere = trace === span.trace || trace === '';
    return entry({
      key: `finding ${rule}`,
      kind: 'Findings',
      icon: severity ?? 'info',
      label: title,
      note: isHere ? '' : worker,
      about: `findings advice ${rule} ${severity ?? ''}`,
      to: { view: 'advice', open: rule, ...(isHere ? {} : { worker, span: label }) },
    });
  });
}

/** Checks that passed on the shown trace, by their sentences. */
export const passedEntries = ({ outcomes }: RunReport, { span }: Selection): Entry[] =>
  outcomes
    .filter(({ status, trace }) => status === 'passed' && trace === span.trace)
    .map(({ rule, title, message }) =>
      entry({
        key: `passed ${rule}`,
        kind: 'Passed checks',
        icon: 'passed',
        label: message || title,
        about: `passed checks advice ${rule} ${title.toLowerCase()}`,
        to: { view: 'advice', open: rule },
      }),
    );

export function tableEntries({ tables }: Tables, views: readonly View[]): Entry[] {
  if (!views.some(({ id }) => id === 'tables')) return [];
  return tables.map(({ name, title, meaning, is_of_run }) =>
    entry({
      key: `table ${name}`,
      kind: 'Tables',
      icon: 'columns',
      label: title,
      note: is_of_run ? 'of the run' : '',
      about: `tables ${name} ${meaning.toLowerCase()}`,
      to: { view: 'tables', options: { table: name } },
    }),
  );
}

interface Shown {
  readonly kind: string;
  readonly icon: IconName;
  readonly view: string;
}

const SHOWN: Readonly<Record<NamesOfKind['kind'], Shown>> = {
  operator: { kind: 'Operators', icon: 'operators', view: 'operators' },
  annotation: { kind: 'Annotations', icon: 'operators', view: 'operators' },
  kernel: { kind: 'Kernels', icon: 'kernels', view: 'kernels' },
  module: { kind: 'Modules', icon: 'modules', view: 'modules' },
  'source-line': { kind: 'Source lines', icon: 'file', view: 'flame' },
};

/** The function in `file:line function`, as the flame graph names it. */
const functionOf = (name: string): string => name.slice(name.indexOf(' ') + 1);

/** The file and its folder. */
const shortPath = (name: string): string => name.replace(/^.*[/\\](?=[^/\\]+[/\\][^/\\]+$)/, '');

const SHORTENED: Partial<Record<NamesOfKind['kind'], (name: string) => string>> = {
  kernel: shortName,
  'source-line': shortPath,
};

function nameEntry(kind: NamesOfKind['kind'], name: string, timeNs: number): Entry {
  const shown = SHOWN[kind];
  const shorten = SHORTENED[kind];
  return entry({
    key: `${kind} ${name}`,
    kind: shown.kind,
    icon: shown.icon,
    label: shorten ? shorten(name) : name,
    // Lines from operator stacks have no time of their own.
    note: timeNs === 0 && kind === 'source-line' ? '' : duration(timeNs),
    about: shorten ? `${shown.kind} ${name}`.toLowerCase() : shown.kind.toLowerCase(),
    to: { view: shown.view, search: kind === 'source-line' ? functionOf(name) : name },
  });
}

/** Names in the trace, each with a search in its view. */
export function nameEntries({ kinds }: Names, views: readonly View[]): Entry[] {
  return kinds
    .filter(({ kind }) => views.some(({ id }) => id === SHOWN[kind].view))
    .flatMap(({ kind, names, times_ns }) =>
      names.map((name, at) => nameEntry(kind, name, times_ns[at] ?? 0)),
    );
}
