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
import { type Segment, useSegments } from '../../widgets/segmented';
import { SearchBox } from '../../widgets/table/toolbar';
import { TableExport } from '../../widgets/table_export';
import { ViewHeader } from '../../widgets/view_header';
import { asAfter, asBefore, type Side } from '../compare/sides';
import { FileDrawer } from './file_drawer';
import type { LineActions } from './line';
import {
  bytesOf,
  eventsOf,
  type FileLine,
  filesOf,
  isOf,
  latestOf,
  linesShown,
  type StateFilter,
  USUAL_SORT,
} from './lines';
import { LinesTable } from './lines_table';
import '../../widgets/table/table.css';
import './runs.css';

const FILTERS: readonly (readonly [StateFilter, string])[] = [
  ['all', 'All'],
  ['ready', 'Ready'],
  ['pending', 'Reading'],
  ['unreadable', 'Unreadable'],
  ['cancelled', 'Cancelled'],
  ['damaged', 'Damaged'],
];

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
  if (!spans.some(isPending)) return null;
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
  column('worker', 'Worker', 'text'),
  column('rank', 'Rank', 'count'),
  column('span', 'Span', 'text'),
  column('file', 'File', 'text'),
  column('state', 'State', 'text'),
  column('size', 'Size', 'bytes'),
  column('events', 'Events', 'count'),
  column('recorded', 'Recorded (ns since 1970)', 'text'),
  column('damage', 'Worst damage', 'text'),
  column('problem', 'Problem', 'text'),
];

function exportOf(files: readonly FileLine[]): ExportTable {
  const rows = files.map(({ run, worker, span }) => [
    run.name,
    worker.name,
    worker.rank,
    span.label,
    span.file,
    span.state,
    span.file_bytes,
    span.events,
    recordedAt(span.file),
    span.damage,
    span.problem?.message ?? null,
  ]);
  return { columns: COLUMNS, rows };
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

export function RunsPage({ runs }: { readonly runs: Runs }): ReactNode {
  const { location, go } = useNavigation();
  const { options } = location;
  const [filter, filters] = useSegments('state', {
    label: 'State of the files',
    segments: segmentsOf(runs),
  });
  const search = useDeferredValue(location.search);
  const matcher = useMemo(() => matcherOf(search), [search]);
  const sort = location.sort ?? USUAL_SORT;
  const open = useMemo(() => new Set(listOf(options.expanded)), [options.expanded]);
  const marked = listOf(options.chosen);
  const { actions, put } = useLineActions(open, marked);
  const lines = useMemo(
    () => linesShown(runs, { filter, matcher, sort, open }),
    [runs, filter, matcher, sort, open],
  );
  const selected = runs.runs.flatMap(filesOf).find(({ span }) => span.trace === options.file);
  const files = lines.flatMap((line) => (line.kind === 'run' ? line.files : []));
  const onSearch = useCallback((text: string) => go({ search: text }, 'replace'), [go]);
  const showAll = (): void =>
    go({ search: '', options: withOptions(options, { state: null }) }, 'replace');
  return (
    <div className="full-view column grow runs">
      <ViewHeader title="Runs" note={noteOf(runs)}>
        <SearchBox
          label="Search runs and files"
          hasConditions={false}
          value={location.search}
          onChange={onSearch}
          invalid={matcher.kind === 'invalid' ? matcher.message : null}
        />
        <CompareButton runs={runs} marked={marked} />
        <TableExport
          note="The shown files, one per row."
          name={['runs']}
          table={() => exportOf(files)}
          about={{ logdir: runs.logdir }}
        />
      </ViewHeader>
      <div className="bar wrap">
        {filters}
        <Progress runs={runs} />
      </div>
      <div className="table-body">
        <LinesTable
          lines={lines}
          sort={sort}
          actions={actions}
          onSort={(next) => go({ sort: next }, 'replace')}
        />
        {lines.length === 0 && (
          <div className="table-none">
            <p>No file matches.</p>
            <Button onClick={showAll}>Show all files</Button>
          </div>
        )}
        {selected && <FileDrawer line={selected} close={() => put('file', null)} />}
      </div>
      <p className="runs-foot note">
        {runs.scanning ? 'Scanning' : 'Scanned'} <code>{runs.logdir}</code> for {runs.looked_for}.
        New traces appear automatically.
      </p>
    </div>
  );
}

export default function Page(): ReactNode {
  const runs = useRunList();
  return runs ? <RunsPage runs={runs} /> : <Skeleton />;
}
