import { type ReactNode, useCallback, useDeferredValue, useMemo, useRef } from 'react';
import { type Narrowing, useNarrowing, useTraceAnswer } from '../../api/queries';
import type { Modules } from '../../api/types.gen';
import { fileName } from '../../core/export';
import { count, duration, plural, share } from '../../core/format';
import type { Sort } from '../../state/location';
import { useNavigation } from '../../state/navigation';
import { useOption, withOption } from '../../state/option';
import type { Selection } from '../../state/selection';
import { timelinePlace } from '../../state/timeline_place';
import { Empty } from '../../widgets/empty';
import { type ExportFormat, ExportMenu } from '../../widgets/export_menu';
import { Goto } from '../../widgets/goto';
import { Icon } from '../../widgets/icon';
import { Loaded } from '../../widgets/loaded';
import { saveTable } from '../../widgets/save_table';
import { Segmented } from '../../widgets/segmented';
import { DataTable } from '../../widgets/table';
import { useColumnsShown } from '../../widgets/table/columns_shown';
import { ROW_PX, useDensity } from '../../widgets/table/density';
import { RowDrawer } from '../../widgets/table/details';
import { queryOf } from '../../widgets/table/query';
import { cellOf, missesOf } from '../../widgets/table/rows';
import { ColumnChooser, SearchBox } from '../../widgets/table/toolbar';
import { ViewHeader } from '../../widgets/view_header';
import { Icicle } from './icicle';
import { costOf, inWords, type Kind, keysOf, measuresOf, type Pass } from './measures';
import {
  flippedOf,
  flippedText,
  foundBy,
  isOpen,
  type Openness,
  pathTo,
  rowsOf,
  siblingsInOrder,
  type Tree,
  treeOf,
  turned,
} from './tree';
import { TreeGrid } from './tree_grid';
import { Work } from './work';
import '../../widgets/table/table.css';
import './modules.css';

const BY = [
  { id: 'instance', label: 'By instance', title: 'Each module, below what calls it' },
  { id: 'class', label: 'By class', title: 'All instances of a class together' },
] as const;
const USUAL_ROWS = 60;

function ByChoice(): ReactNode {
  const [by, choose] = useOption(
    'by',
    'instance',
    BY.map(({ id }) => id),
  );
  return <Segmented label="Rows" segments={BY} value={by} onChoose={choose} />;
}

/** So deep that all open modules fit about one screen. */
export function usualDepth(tree: Tree): number {
  const counts: number[] = [];
  for (const depth of tree.depth) counts[depth] = (counts[depth] ?? 0) + 1;
  let rows = counts[0] ?? 0;
  let depth = 0;
  while (depth + 1 < counts.length && rows + (counts[depth + 1] ?? 0) <= USUAL_ROWS) {
    depth += 1;
    rows += counts[depth] ?? 0;
  }
  return depth;
}

function noteOf(table: Modules): string {
  const all = (table.all_row_count ?? table.row_count) || 0;
  const what = table.by === 'class' ? plural(all, 'class', 'classes') : plural(all, 'module');
  return table.origin === 'nn.Module' ? what : `${what} from ${table.origin}`;
}

interface LinksProps {
  readonly table: Modules;
  readonly at: number;
}

function Links({ table, at }: LinksProps): ReactNode {
  const { location } = useNavigation();
  const event = table.event[at] ?? -1;
  const name = String(cellOf(table, 'module', at));
  return (
    <p className="module-links">
      {event >= 0 && (
        <Goto
          to={timelinePlace(table.start_ns[at] ?? 0, table.end_ns[at] ?? 0, event)}
          title={`Its first call, ${duration(table.start_ns[at] ?? 0)} after the first event`}
        >
          In the timeline <Icon name="arrow" size={13} />
        </Goto>
      )}
      <Goto
        to={{
          view: 'memory',
          search: `module:"${name}"`,
          group: null,
          sort: null,
          options: { tab: 'allocations' },
        }}
      >
        Its allocations <Icon name="arrow" size={13} />
      </Goto>
      <Goto to={{ options: withOption(location.options, 'root', String(at)) }}>
        Alone in the icicle <Icon name="zoom" size={13} />
      </Goto>
    </p>
  );
}

interface FoundProps {
  readonly table: Modules;
  readonly selection: Selection;
  readonly narrowing: Narrowing | null;
  readonly isStale: boolean;
}

const rowOf = (text: string | undefined, count_: number): number | null => {
  const row = text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  return row < count_ ? row : null;
};

interface SaveOptions {
  readonly table: Modules;
  readonly rows: readonly number[];
  readonly names: readonly string[];
  readonly shown: Readonly<Record<string, boolean>>;
  readonly format: ExportFormat;
}

/** The rows in sight, with their whole paths. */
function save({ table, rows, names, shown, format }: SaveOptions): void {
  const [first, ...others] = table.columns;
  if (!first) return;
  const columns = [
    first,
    { ...first, key: 'path', label: 'Path', unit: 'code' as const, help: 'What called it.' },
    ...others.filter(({ key }) => shown[key]),
  ];
  const exported = {
    columns,
    rows: rows.map((at) =>
      columns.map(({ key }) =>
        key === 'path' ? (table.path[at] ?? null) : cellOf(table, key, at),
      ),
    ),
  };
  const about = { table: 'modules', recording: names, schema: table.schema };
  saveTable({ name: [...names, 'modules'], format, table: exported, about });
}

interface CrumbsProps {
  readonly table: Modules;
  readonly tree: Tree;
  readonly root: number;
}

/** The way back from a module that fills the icicle. */
function Crumbs({ table, tree, root }: CrumbsProps): ReactNode {
  const { location } = useNavigation();
  const to = (at: number | null): Parameters<typeof Goto>[0]['to'] => ({
    options: withOption(location.options, 'root', at === null ? null : String(at)),
  });
  return (
    <nav className="module-crumbs" aria-label="What the icicle shows">
      <Goto to={to(null)}>All modules</Goto>
      {pathTo(tree, root).map((at) => (
        <span key={at}>
          <Icon name="chevron" size={12} />
          {at === root ? (
            <strong>{String(cellOf(table, 'module', at))}</strong>
          ) : (
            <Goto to={to(at)}>{String(cellOf(table, 'module', at))}</Goto>
          )}
        </span>
      ))}
    </nav>
  );
}

/** Where the modules are known from, unless torch itself recorded their calls. */
function Origin({ table }: { readonly table: Modules }): ReactNode {
  if (table.origin === 'nn.Module') return null;
  return (
    <p className="module-note">
      <Icon name="info" size={14} />
      <span>
        {table.origin_meaning} To record calls of nn.Module:{' '}
        <code className="inline-code">profile(with_stack=True, with_modules=True)</code>
      </span>
    </p>
  );
}

/** What is not of any module, in a line: the figures of the table do not hold it. */
function Unassigned({ table }: { readonly table: Modules }): ReactNode {
  const { unassigned_backward_host_ns: host, unassigned_backward_device_ns: device } = table;
  if (host === 0 && device === 0) return null;
  return (
    <p className="module-note">
      <Icon name="info" size={14} /> Backward calls of {duration(host)} on the host
      {device > 0 && ` and ${duration(device)} on the ${table.device_label}`} belong to no module
      that is known.
    </p>
  );
}

/** Which modules are open: as deep as fits a screen, and what was opened and closed by hand. */
function useOpenness(tree: Tree): readonly [Openness, (flipped: ReadonlySet<number>) => void] {
  const { location, go } = useNavigation();
  const text = location.options.turned;
  const open = useMemo(() => ({ depth: usualDepth(tree), flipped: flippedOf(text) }), [tree, text]);
  const set = (flipped: ReadonlySet<number>): void =>
    go({ options: withOption(location.options, 'turned', flippedText(flipped)) }, 'replace');
  return [open, set];
}

/** Every module above a chosen one is opened, so that it is in sight. */
function withWayTo(tree: Tree, open: Openness, at: number): ReadonlySet<number> {
  let { flipped } = open;
  for (const above of pathTo(tree, at).slice(0, -1)) {
    flipped = turned(tree, { depth: open.depth, flipped }, { at: above, opens: true, deep: false });
  }
  return flipped;
}

function Instances({ table, selection, narrowing, isStale }: FoundProps): ReactNode {
  const { location, go } = useNavigation();
  const chart = useRef<HTMLDivElement>(null);
  const tree = useMemo(() => treeOf(table), [table]);
  const [open, setFlipped] = useOpenness(tree);
  const measures = useMemo(() => measuresOf(table), [table]);
  const kinds = measures.kinds.map(({ id }) => id);
  const [kind, chooseKind] = useOption<Kind>('width', kinds[0] ?? 'host', kinds);
  const passes = measures.passes.map(({ id }) => id);
  const [pass, choosePass] = useOption<Pass>('pass', 'both', passes);
  const keys = useMemo(() => keysOf(table, kind, pass), [table, kind, pass]);
  const value = useCallback((at: number) => costOf(table, keys, at), [table, keys]);
  const total = useMemo(() => tree.roots.reduce((sum, at) => sum + value(at), 0), [tree, value]);
  const root = rowOf(location.options.root, table.row_count);
  const roots = useMemo(() => (root === null ? tree.roots : [root]), [root, tree]);
  const search = useDeferredValue(location.search);
  const query = useMemo(() => queryOf(table, search), [table, search]);
  const found = useMemo(() => {
    const misses = missesOf(table, query);
    return foundBy(tree, misses && ((at) => misses[at] === 0));
  }, [tree, table, query]);
  const sort: Sort | null =
    location.sort && table.columns.some(({ key }) => key === location.sort?.key)
      ? location.sort
      : null;
  const rows = useMemo(
    () =>
      rowsOf({
        tree,
        roots: tree.roots,
        open: (at) => isOpen(tree, open, at),
        inOrder: siblingsInOrder(table, sort),
        shown: found?.shown ?? null,
      }),
    [tree, open, table, sort, found],
  );
  const choice = useColumnsShown('modules', table.columns);
  const [density, setDensity] = useDensity();
  const selected = rowOf(location.options.row, table.row_count);
  const select = (at: number | null): void => {
    const options = withOption(location.options, 'row', at === null ? null : String(at));
    const flipped = at === null ? open.flipped : withWayTo(tree, open, at);
    go({ options: withOption(options, 'turned', flippedText(flipped)) }, 'replace');
  };
  const { run, worker, span } = selection;
  const names = [run.name, worker.name, span.label];
  const columns = table.columns.slice(1).filter(({ key }) => choice.shown[key]);
  const measureLabel = measures.kinds.find(({ id }) => id === kind)?.title ?? '';
  return (
    <div className={isStale ? 'full-view modules stale' : 'full-view modules'} aria-busy={isStale}>
      <ViewHeader title="Modules" note={noteOf(table)}>
        <ByChoice />
        <SearchBox
          value={location.search}
          onChange={(text) => go({ search: text }, 'replace')}
          invalid={null}
          problem={query.kind === 'invalid' ? query.message : null}
          label="Search the modules"
        />
        <ColumnChooser
          columns={table.columns}
          choice={choice}
          density={density}
          onDensity={setDensity}
        />
        <ExportMenu
          note="The modules in sight with their paths, in full precision."
          onExport={(format) => save({ table, rows, names, shown: choice.shown, format })}
          picture={{
            element: chart,
            title: 'Modules',
            subtitle: `${run.name}, ${worker.name}: ${measureLabel}`,
            file: fileName([...names, 'modules'], 'png'),
          }}
        />
      </ViewHeader>
      <section className="module-chart" aria-label="Icicle">
        <div className="module-bar">
          <Segmented
            label="Width"
            segments={measures.kinds}
            value={kind}
            onChoose={chooseKind}
            isLabelled
          />
          {kind !== 'memory' && measures.passes.length > 0 && (
            <Segmented label="Pass" segments={measures.passes} value={pass} onChoose={choosePass} />
          )}
          <span className="muted">
            {inWords(kind, total)} in all{narrowing && `, ${narrowing.label}`}
          </span>
          <span className="space" />
          {root === null ? (
            <span className="muted">Double-click a module to see it alone</span>
          ) : (
            <Crumbs table={table} tree={tree} root={root} />
          )}
        </div>
        <div ref={chart}>
          <Icicle
            tree={tree}
            roots={roots}
            value={value}
            nameOf={(at) => String(cellOf(table, 'module', at))}
            classOf={(at) => String(cellOf(table, 'class_name', at))}
            wordsOf={(at) =>
              `${inWords(kind, value(at))}, ${share(total > 0 ? value(at) / total : 0)} of all`
            }
            selected={selected}
            hits={found?.hits ?? null}
            onSelect={(at) => select(at === selected ? null : at)}
            onZoom={(at) =>
              go({ options: withOption(location.options, 'root', at === null ? null : String(at)) })
            }
          />
        </div>
        <Origin table={table} />
        <Unassigned table={table} />
        {table.left_out_count > 0 && (
          <p className="module-note">
            <Icon name="info" size={14} /> {count(table.left_out_count)} further modules are left
            out; <code>stepscope export --table modules</code> writes them all.
          </p>
        )}
      </section>
      <div className="table-body">
        <TreeGrid
          table={table}
          tree={tree}
          columns={columns}
          rows={rows}
          rowPx={ROW_PX[density]}
          sort={sort}
          selected={selected}
          hits={found?.hits ?? null}
          shareOf={(at) => (total > 0 ? value(at) / total : 0)}
          shareLabel={`${measureLabel}, of all modules`}
          isOpen={(at) => found !== null || isOpen(tree, open, at)}
          onTurn={(at, opens, deep) => setFlipped(turned(tree, open, { at, opens, deep }))}
          onSort={(next) => go({ sort: next }, 'replace')}
          onSelect={select}
        />
        {rows.length === 0 && (
          <div className="table-none">
            <p>No module is called “{search}”.</p>
            <button type="button" className="button" onClick={() => go({ search: '' }, 'replace')}>
              Clear the search
            </button>
          </div>
        )}
        {selected !== null && (
          <RowDrawer table={table} at={selected} close={() => select(null)}>
            <Links table={table} at={selected} />
            <Work trace={span.trace} narrowing={narrowing} row={selected} />
          </RowDrawer>
        )}
      </div>
    </div>
  );
}

function Classes({ table, selection, narrowing, isStale }: FoundProps): ReactNode {
  const { run, worker, span } = selection;
  return (
    <DataTable
      table={table}
      name="modules-by-class"
      label="Modules"
      recording={[run.name, worker.name, span.label]}
      isStale={isStale}
      identity={['class_name']}
      tools={<ByChoice />}
      details={(at) => (
        <Work
          trace={span.trace}
          narrowing={narrowing}
          className={String(cellOf(table, 'class_name', at))}
        />
      )}
    />
  );
}

/** The modules of the recording: by what they cost, in a tree and by class. */
export function ModulesView({ selection }: { readonly selection: Selection }): ReactNode {
  const { trace } = selection.span;
  const narrowing = useNarrowing(trace);
  const [by] = useOption(
    'by',
    'instance',
    BY.map(({ id }) => id),
  );
  const { start_ns, end_ns } = narrowing ?? {};
  const query = useTraceAnswer<Modules>(
    trace,
    'modules',
    { by, start_ns, end_ns },
    { enabled: narrowing !== undefined },
  );
  if (query.error && !query.data) {
    return (
      <div className="page">
        <ViewHeader title="Modules" />
        <Loaded query={query} what="Modules">
          {() => null}
        </Loaded>
      </div>
    );
  }
  return (
    <Loaded query={query} what="Modules">
      {(table) => {
        if (table.row_count === 0) {
          return (
            <div className="page">
              <ViewHeader title="Modules">
                <ByChoice />
              </ViewHeader>
              <Empty icon="info" title="No module here">
                <p>{table.empty}</p>
              </Empty>
            </div>
          );
        }
        const parts = {
          table,
          selection,
          narrowing: narrowing ?? null,
          isStale: query.isPlaceholderData,
        };
        return table.by === 'class' ? <Classes {...parts} /> : <Instances {...parts} />;
      }}
    </Loaded>
  );
}
