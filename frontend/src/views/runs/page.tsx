import { type ReactNode, useCallback, useDeferredValue, useMemo } from 'react';
import { useRunList } from '../../api/queries';
import type { Column, RunState, Runs } from '../../api/types.gen';
import { column } from '../../core/columns';
import type { ExportTable } from '../../core/export';
import { bytes, count, plural } from '../../core/format';
import { isPending, progressOf, spansOf } from '../../core/progress';
import { recordedAt } from '../../core/recorded';
import { matcherOf } from '../../core/search';
import { useNavigation } from '../../state/navigation';
import { withOptions } from '../../state/option';
import { Button } from '../../widgets/button';
import { Icon } from '../../widgets/icon';
import { Skeleton } from '../../widgets/loaded';
import { WholeBar, Words } from '../../widgets/reading';
import { wholeWords } from '../../widgets/reading/words';
import { type Segment, Segmented, useSegments } from '../../widgets/segmented';
import { SearchBox } from '../../widgets/table/toolbar';
import { TableExport } from '../../widgets/table_export';
import { ViewHeader } from '../../widgets/view_header';
import { asAfter, asBefore, type Side } from '../compare/sides';
import type { PageProps } from '../view';
import { FileDrawer } from './file_drawer';
import type { LineActions } from './line';
import {
  bytesOf,
  damageOf,
  eventsOf,
  filesOf,
  folderOf,
  isOf,
  isOfSeverity,
  latestOf,
  linesShown,
  type SeverityFilter,
  type StateFilter,
  USUAL_SORT,
} from './lines';
import { LinesTable } from './lines_table';
import '../../widgets/table/table.css';
import './runs.css';

const FILTERS: readonly (readonly [StateFilter, string])[] = [
  ['all', 'All files'],
  ['ready', 'Ready'],
  ['pending', 'Reading'],
  ['unreadable', 'Unreadable'],
  ['cancelled', 'Cancelled'],
  ['damaged', 'Damaged'],
];

const SEVERITIES: readonly (readonly [SeverityFilter, string])[] = [
  ['any', 'All runs'],
  ['critical', 'Critical'],
  ['warning', 'Warning'],
  ['info', 'Info'],
  ['none', 'No findings'],
];

function severitySegmentsOf({ runs }: Runs): Segment<SeverityFilter>[] {
  return SEVERITIES.map(([id, label]) => {
    const size = runs.filter((run) => isOfSeverity(run, id)).length;
    return {
      id,
      label: `${label} ${count(size)}`,
      title: id === 'any' ? undefined : 'By the first finding of the advice',
      isDisabled: size === 0 && id !== 'any',
    };
  });
}

/** Whether there is more to tell of the files than that all are ready. */
const hasStates = (runs: Runs): boolean =>
  runs.runs.flatMap(spansOf).some((span) => span.state !== 'ready' || span.damage !== null);

function segmentsOf(runs: Runs): Segment<StateFilter>[] {
  const spans = runs.runs.flatMap(spansOf);
  return FILTERS.map(([id, label]) => {
    const size = spans.filter((span) => isOf(span, id)).length;
    return { id, label: `${label} ${count(size)}`, isDisabled: size === 0 && id !== 'all' };
  });
}

function noteOf(runs: Runs): string {
  const spans = runs.runs.flatMap(spansOf);
  const events = eventsOf(spans);
  const parts = [
    `${plural(spans.length, 'file')} in ${plural(runs.runs.length, 'run')}`,
    bytes(bytesOf(spans)),
    events === null ? '' : `${count(events)} events read`,
  ];
  return parts.filter((part) => part !== '').join(', ');
}

const listOf = (text: string | undefined): string[] => (text ?? '').split(',').filter(Boolean);

interface Candidate {
  readonly side: Side;
  readonly recorded: string;
}

/** The side of a marked run or file. */
function candidateOf(runs: Runs, key: string): Candidate | null {
  for (const run of runs.runs) {
    if (run.id === key)
      return { side: { run, worker: null, span: null }, recorded: latestOf(spansOf(run)) };
    const file = filesOf(run).find(({ span }) => span.trace === key);
    if (file) {
      const side = { run, worker: file.worker.name, span: file.span.label };
      return { side, recorded: recordedAt(file.span.file) };
    }
  }
  return null;
}

interface CompareProps {
  readonly runs: Runs;
  readonly marked: readonly string[];
}

function CompareButton({ runs, marked }: CompareProps): ReactNode {
  const { go } = useNavigation();
  const [before, after] = marked
    .flatMap((key) => candidateOf(runs, key) ?? [])
    .toSorted((a, b) => (a.recorded < b.recorded ? -1 : 1));
  const title = after
    ? 'The earlier one is the baseline'
    : 'Select two runs or two files by their checkboxes';
  return (
    <Button
      aria-disabled={!after}
      title={title}
      onClick={() => {
        if (before && after)
          go({ view: 'compare', ...asAfter(after.side, {}), ...asBefore(before.side) });
      }}
    >
      <Icon name="compare" size={15} /> Compare {before ? `${after ? 2 : 1} of 2` : 'two'}
    </Button>
  );
}

function Progress({ runs }: { readonly runs: Runs }): ReactNode {
  const spans = runs.runs.flatMap(spansOf);
  if (!spans.some(isPending)) {
    return runs.has_pending_results ? (
      <p className="runs-progress note" role="status">
        Computing results…
      </p>
    ) : null;
  }
  const progress = progressOf(spans);
  return (
    <div className="runs-progress">
      <WholeBar progress={progress} label="Reading all files" />
      <Words words={wholeWords(progress)} />
    </div>
  );
}

const COLUMNS: readonly Column[] = [
  column('run', 'Run', 'text'),
  column('state', 'State', 'text'),
  column('step', 'Step time', 'ns'),
  column('busy', 'Device busy', 'share'),
  column('steps', 'Steps', 'count'),
  column('batch', 'Batch', 'count'),
  column('severity', 'Severity', 'text'),
  column('finding', 'First finding', 'text'),
  column('finding_low', 'First finding, least saving', 'ns'),
  column('finding_high', 'First finding, greatest saving', 'ns'),
  column('saving_low', 'All savings, least', 'ns'),
  column('saving_high', 'All savings, greatest', 'ns'),
  column('saving_share', 'All savings, greatest fraction', 'share'),
  column('damage', 'Worst damage', 'text'),
  column('recorded', 'Recorded (ns since 1970)', 'text'),
  column('files', 'Files', 'count'),
  column('size', 'Size', 'bytes'),
  column('events', 'Events', 'count'),
  column('problem', 'Problem', 'text'),
];

function rowOf(run: RunState): ExportTable['rows'][number] {
  const spans = spansOf(run);
  const { step_ns, busy_share, step_count, batch_size, finding, saving } = run.result ?? {};
  return [
    run.name,
    run.state,
    step_ns ?? null,
    busy_share ?? null,
    step_count ?? null,
    batch_size ?? null,
    finding?.severity ?? null,
    finding?.title ?? null,
    finding?.saving?.low_ns ?? null,
    finding?.saving?.high_ns ?? null,
    saving?.low_ns ?? null,
    saving?.high_ns ?? null,
    saving?.share ?? null,
    damageOf(spans),
    latestOf(spans) || null,
    spans.length,
    bytesOf(spans),
    eventsOf(spans),
    spans.find(({ problem }) => problem)?.problem?.message ?? null,
  ];
}

/** The actions of lines, with their state in the URL. */
function useLineActions(open: ReadonlySet<string>, marked: readonly string[]) {
  const { location, go } = useNavigation();
  const { options } = location;
  const put = (name: string, value: string | null): void =>
    go({ options: withOptions(options, { [name]: value }) }, 'replace');
  const actions: LineActions = {
    toggleOpen: ({ id }: RunState) => {
      const others = [...open].filter((other) => other !== id);
      put('expanded', (open.has(id) ? others : [...others, id]).join(','));
    },
    // Two can be marked: a third one replaces the first.
    toggleMarked: (key) => {
      const others = marked.filter((other) => other !== key);
      put('chosen', (marked.includes(key) ? others : [...others, key].slice(-2)).join(','));
    },
    isMarked: (key) => marked.includes(key),
    select: ({ span }) => put('file', options.file === span.trace ? null : span.trace),
  };
  return { actions, put };
}

const GROUPS = [
  { id: '', label: 'None' },
  { id: 'folder', label: 'Folder', title: 'Runs below the name of their folder' },
] as const;

interface PageState {
  readonly runs: Runs;
  /** The run that the other views show. */
  readonly current: string;
}

export function RunsPage({ runs, current }: PageState): ReactNode {
  const { location, go } = useNavigation();
  const { options } = location;
  const [filter, filters] = useSegments('state', {
    label: 'State of the files',
    segments: segmentsOf(runs),
  });
  const [severity, severities] = useSegments('severity', {
    label: 'Severity of the first finding',
    segments: severitySegmentsOf(runs),
  });
  const isGrouped = location.group === 'folder';
  const search = useDeferredValue(location.search);
  const matcher = useMemo(() => matcherOf(search), [search]);
  const sort = location.sort ?? USUAL_SORT;
  const open = useMemo(() => new Set(listOf(options.expanded)), [options.expanded]);
  const marked = listOf(options.chosen);
  const { actions, put } = useLineActions(open, marked);
  const lines = useMemo(
    () => linesShown(runs, { filter, severity, matcher, sort, open, isGrouped }),
    [runs, filter, severity, matcher, sort, open, isGrouped],
  );
  const selected = runs.runs.flatMap(filesOf).find(({ span }) => span.trace === options.file);
  const shown = lines.flatMap((line) => (line.kind === 'run' ? [line.run] : []));
  const onSearch = useCallback((text: string) => go({ search: text }, 'replace'), [go]);
  const showAll = (): void =>
    go({ search: '', options: withOptions(options, { state: null, severity: null }) }, 'replace');
  return (
    <div className="full-view column grow runs">
      <ViewHeader title="Runs" note={noteOf(runs)}>
        <SearchBox
          label="Search runs, findings and files"
          hasConditions={false}
          value={location.search}
          onChange={onSearch}
          invalid={matcher.kind === 'invalid' ? matcher.message : null}
        />
        <CompareButton runs={runs} marked={marked} />
        <TableExport
          note="The shown runs, one per row."
          name={['runs']}
          table={() => ({ columns: COLUMNS, rows: shown.map(rowOf) })}
          about={{ logdir: runs.logdir }}
        />
      </ViewHeader>
      <div className="bar wrap">
        {severities}
        {runs.runs.some((run) => folderOf(run) !== '') && (
          <Segmented
            label="Group by"
            isLabelled
            segments={GROUPS}
            value={isGrouped ? 'folder' : ''}
            onChoose={(group) => go({ group: group || null }, 'replace')}
          />
        )}
        {(filter !== 'all' || hasStates(runs)) && filters}
        <Progress runs={runs} />
      </div>
      <div className="table-body">
        <LinesTable
          lines={lines}
          sort={sort}
          actions={actions}
          current={current}
          onSort={(next) => go({ sort: next }, 'replace')}
        />
        {lines.length === 0 && (
          <div className="table-none">
            <p>No run matches.</p>
            <Button onClick={showAll}>Show all runs</Button>
          </div>
        )}
        {selected && <FileDrawer line={selected} close={() => put('file', null)} />}
      </div>
      {import.meta.env.MODE !== 'shared' && (
        <p className="runs-foot note">
          {runs.scanning ? 'Scanning' : 'Scanned'} <code>{runs.logdir}</code> for {runs.looked_for}.
          New traces appear automatically.
        </p>
      )}
    </div>
  );
}

export default function Page({ selection }: PageProps): ReactNode {
  const runs = useRunList();
  return runs ? <RunsPage runs={runs} current={selection.run.id} /> : <Skeleton />;
}
