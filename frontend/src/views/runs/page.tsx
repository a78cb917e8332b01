import { type ReactNode, useCallback, useDeferredValue, useMemo } from 'react';
import { useKnownRuns } from '../../api/known_runs';
import type { RunState, Runs } from '../../api/types.gen';
import { bytes, count, plural } from '../../core/format';
import { isPending, progressOf, spansOf } from '../../core/progress';
import { recordedAt } from '../../core/recorded';
import { matcherOf } from '../../core/search';
import { useNavigation } from '../../state/navigation';
import { useOption, withOption } from '../../state/option';
import { ExportMenu } from '../../widgets/export_menu';
import { Icon } from '../../widgets/icon';
import { Skeleton } from '../../widgets/loaded';
import { WholeBar, Words } from '../../widgets/reading';
import { wholeWords } from '../../widgets/reading/words';
import { saveTable } from '../../widgets/save_table';
import { type Segment, Segmented } from '../../widgets/segmented';
import { SearchBox } from '../../widgets/table/toolbar';
import { ViewHeader } from '../../widgets/view_header';
import { asAfter, asBefore, type Side } from '../compare/sides';
import { exportOf } from './exported';
import { FileDrawer } from './file_drawer';
import type { Acts } from './line';
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
  ['pending', 'Being read'],
  ['unreadable', 'Unreadable'],
  ['cancelled', 'Cancelled'],
  ['damaged', 'Damaged'],
];
const KNOWN = FILTERS.map(([id]) => id);

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
  const words = [
    `${plural(spans.length, 'file')} in ${plural(runs.runs.length, 'run')}`,
    bytes(bytesOf(spans)),
    events === null ? '' : `${count(events)} events read`,
  ];
  return words.filter((word) => word !== '').join(', ');
}

const listOf = (text: string | undefined): string[] => (text ?? '').split(',').filter(Boolean);

interface Candidate {
  readonly side: Side;
  readonly recorded: string;
}

/** What a box stands for: a run by its id, or a file. */
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
  readonly chosen: readonly string[];
}

function CompareButton({ runs, chosen }: CompareProps): ReactNode {
  const { go } = useNavigation();
  const [before, after] = chosen
    .flatMap((key) => candidateOf(runs, key) ?? [])
    .toSorted((a, b) => (a.recorded < b.recorded ? -1 : 1));
  const title = after
    ? 'The one that was recorded first is held to be before'
    : 'Choose two runs, or two files, by the boxes before them';
  return (
    <button
      type="button"
      className="button"
      aria-disabled={!after}
      title={title}
      onClick={() => {
        if (before && after)
          go({ view: 'compare', ...asAfter(after.side, {}), ...asBefore(before.side) });
      }}
    >
      <Icon name="compare" size={15} /> Compare {before ? `${after ? 2 : 1} of 2` : 'two'}
    </button>
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

function save(files: readonly FileLine[], runs: Runs, format: 'csv' | 'json'): void {
  saveTable({
    name: ['runs'],
    format,
    table: exportOf(files),
    about: { logdir: runs.logdir },
  });
}

/** What the page's lines can be told to do; all of it stands in the URL. */
function useActs(open: ReadonlySet<string>, chosen: readonly string[]) {
  const { location, go } = useNavigation();
  const { options } = location;
  const put = (name: string, value: string | null): void =>
    go({ options: withOption(options, name, value) }, 'replace');
  const acts: Acts = {
    toggleOpen: ({ id }: RunState) => {
      const others = [...open].filter((each) => each !== id);
      put('expanded', (open.has(id) ? others : [...others, id]).join(','));
    },
    // Two are compared: a third takes the place of the one that was chosen first.
    toggleChosen: (key) => {
      const others = chosen.filter((each) => each !== key);
      put('chosen', (chosen.includes(key) ? others : [...others, key].slice(-2)).join(','));
    },
    isChosen: (key) => chosen.includes(key),
    select: ({ span }) => put('file', options.file === span.trace ? null : span.trace),
  };
  return { acts, put };
}

function NoLine({ showAll }: { readonly showAll: () => void }): ReactNode {
  return (
    <div className="runs-none">
      <p>No file is like that.</p>
      <button type="button" className="button" onClick={showAll}>
        Show all files
      </button>
    </div>
  );
}

export function RunsPage({ runs }: { readonly runs: Runs }): ReactNode {
  const { location, go } = useNavigation();
  const { options } = location;
  const [filter, chooseFilter] = useOption<StateFilter>('state', 'all', KNOWN);
  const search = useDeferredValue(location.search);
  const matcher = useMemo(() => matcherOf(search), [search]);
  const sort = location.sort ?? USUAL_SORT;
  const open = useMemo(() => new Set(listOf(options.expanded)), [options.expanded]);
  const chosen = listOf(options.chosen);
  const { acts, put } = useActs(open, chosen);
  const lines = useMemo(
    () => linesShown(runs, { filter, matcher, sort, open }),
    [runs, filter, matcher, sort, open],
  );
  const selected = runs.runs.flatMap(filesOf).find(({ span }) => span.trace === options.file);
  const files = lines.flatMap((line) => (line.kind === 'run' ? line.files : []));
  const onSearch = useCallback((text: string) => go({ search: text }, 'replace'), [go]);
  const showAll = (): void =>
    go({ search: '', options: withOption(options, 'state', null) }, 'replace');
  return (
    <div className="full-view runs">
      <ViewHeader title="Runs" note={noteOf(runs)}>
        <SearchBox
          label="Search runs and files"
          hasConditions={false}
          value={location.search}
          onChange={onSearch}
          invalid={matcher.kind === 'invalid' ? matcher.message : null}
        />
        <CompareButton runs={runs} chosen={chosen} />
        <ExportMenu
          note="The files shown, a row each."
          onExport={(format) => save(files, runs, format)}
        />
      </ViewHeader>
      <div className="runs-filters">
        <Segmented
          label="Files in which state"
          segments={segmentsOf(runs)}
          value={filter}
          onChoose={chooseFilter}
        />
        <Progress runs={runs} />
      </div>
      <div className="runs-body">
        <LinesTable
          lines={lines}
          sort={sort}
          acts={acts}
          onSort={(next) => go({ sort: next }, 'replace')}
        />
        {lines.length === 0 && <NoLine showAll={showAll} />}
        {selected && <FileDrawer line={selected} close={() => put('file', null)} />}
      </div>
      <p className="runs-foot">
        {runs.scanning ? 'Looking through' : 'Looked through'} <code>{runs.logdir}</code> for{' '}
        {runs.looked_for}. What is recorded meanwhile appears by itself.
      </p>
    </div>
  );
}

/** Everything that was found, and how far its reading has come. */
export default function Page(): ReactNode {
  const runs = useKnownRuns();
  return runs ? <RunsPage runs={runs} /> : <Skeleton />;
}
