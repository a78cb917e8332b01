import { type ReactNode, useCallback, useDeferredValue, useMemo, useRef } from 'react';
import type { Modules } from '../../api/types.gen';
import { fileName } from '../../core/export';
import { count, duration, plural, share } from '../../core/format';
import type { Sort } from '../../state/location';
import { useNavigation } from '../../state/navigation';
import { withOptions } from '../../state/option';
import { timelineLocation } from '../../state/timeline_location';
import { Button } from '../../widgets/button';
import { type ExportFormat, ExportMenu } from '../../widgets/export_menu';
import { Goto } from '../../widgets/goto';
import { Icon } from '../../widgets/icon';
import { saveTable } from '../../widgets/save_table';
import { useSegments } from '../../widgets/segmented';
import { useColumnsShown } from '../../widgets/table/columns_shown';
import { ROW_PX, useDensity } from '../../widgets/table/density';
import { RowDrawer } from '../../widgets/table/details';
import { queryOf } from '../../widgets/table/query';
import { cellOf, missesOf } from '../../widgets/table/rows';
import { ColumnChooser, SearchBox } from '../../widgets/table/toolbar';
import { ViewHeader } from '../../widgets/view_header';
import { Icicle } from './icicle';
import { costOf, type Kind, keysOf, measuresOf, type Pass, textOf } from './measures';
import type { ModulesProps } from './props';
import {
  defaultDepth,
  flippedOf,
  flippedText,
  isOpen,
  type Openness,
  pathTo,
  rowsOf,
  searchTree,
  siblingsInOrder,
  type Tree,
  treeOf,
  withToggled,
} from './tree';
import { TreeGrid } from './tree_grid';
import { Work } from './work';

/** Headings of fractions, but of the device. */
const SHARE_NAMES: Readonly<Partial<Record<Kind, string>>> = {
  host: 'Of host time',
  memory: 'Of memory',
};

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
          to={timelineLocation(table.start_ns[at] ?? 0, table.end_ns[at] ?? 0, event)}
          title={`Its first call, ${duration(table.start_ns[at] ?? 0)} after the first event`}
        >
          In the timeline <Icon name="arrow" size={13} />
        </Goto>
      )}
      <Goto to={{ view: 'memory', search: `module:"${name}"`, options: { tab: 'allocations' } }}>
        Its allocations <Icon name="arrow" size={13} />
      </Goto>
      <Goto to={{ options: withOptions(location.options, { root: String(at) }) }}>
        Zoom in <Icon name="zoom" size={13} />
      </Goto>
    </p>
  );
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

/** Exports the shown rows with their paths. */
function save({ table, rows, names, shown, format }: SaveOptions): void {
  const [first, ...others] = table.columns;
  if (!first) return;
  const columns = [
    first,
    {
      ...first,
      key: 'path',
      label: 'Path',
      unit: 'code' as const,
      help: 'The modules that call it.',
    },
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
  const about = { table: 'modules', trace: names, schema: table.schema };
  saveTable({ name: [...names, 'modules'], format, table: exported, about });
}

function noteOf(table: Modules): string {
  const all = (table.all_row_count ?? table.row_count) || 0;
  const what = table.by === 'class' ? plural(all, 'class', 'classes') : plural(all, 'module');
  return table.origin === 'nn.Module' ? what : `${what} from ${table.origin}`;
}

interface CrumbsProps {
  readonly table: Modules;
  readonly tree: Tree;
  readonly root: number;
}

/** The path to the zoomed module. */
function Crumbs({ table, tree, root }: CrumbsProps): ReactNode {
  const { location } = useNavigation();
  const to = (at: number | null): Parameters<typeof Goto>[0]['to'] => ({
    options: withOptions(location.options, { root: at === null ? null : String(at) }),
  });
  return (
    <nav className="module-crumbs wrap" aria-label="Path to the zoomed module">
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

/** The origin of the modules, unless torch recorded their calls. */
function Origin({ table }: { readonly table: Modules }): ReactNode {
  if (table.origin === 'nn.Module') return null;
  return (
    <p className="module-note flex note">
      <Icon name="info" size={14} />
      <span>
        {table.origin_meaning} To record calls of nn.Module:{' '}
        <code className="inline-code">profile(with_stack=True, with_modules=True)</code>
      </span>
    </p>
  );
}

/** The backward time that belongs to no module. */
function Unassigned({ table }: { readonly table: Modules }): ReactNode {
  const { unassigned_backward_host_ns: host, unassigned_backward_device_ns: device } = table;
  if (host === 0 && device === 0) return null;
  return (
    <p className="module-note flex note">
      <Icon name="info" size={14} /> Backward calls of {duration(host)} on the host
      {device > 0 && ` and ${duration(device)} on the ${table.device_label}`} belong to no known
      module.
    </p>
  );
}

/** The open modules: by default as deep as fits a screen. */
function useOpenness(tree: Tree): readonly [Openness, (flipped: ReadonlySet<number>) => void] {
  const { location, go } = useNavigation();
  const text = location.options.turned;
  const open = useMemo(
    () => ({ depth: defaultDepth(tree), flipped: flippedOf(text) }),
    [tree, text],
  );
  const set = (flipped: ReadonlySet<number>): void =>
    go({ options: withOptions(location.options, { turned: flippedText(flipped) }) }, 'replace');
  return [open, set];
}

/** Opens all modules above one, to make it visible. */
function withOpenPath(tree: Tree, open: Openness, at: number): ReadonlySet<number> {
  let { flipped } = open;
  for (const above of pathTo(tree, at).slice(0, -1)) {
    flipped = withToggled(
      tree,
      { depth: open.depth, flipped },
      { at: above, opens: true, deep: false },
    );
  }
  return flipped;
}

export function Instances(props: ModulesProps): ReactNode {
  const { table, selection, narrowing, isStale } = props;
  const { location, go } = useNavigation();
  const chart = useRef<HTMLDivElement>(null);
  const tree = useMemo(() => treeOf(table), [table]);
  const [open, setFlipped] = useOpenness(tree);
  const measures = useMemo(() => measuresOf(table), [table]);
  const [kind, kinds] = useSegments<Kind>('width', {
    label: 'Width',
    segments: measures.kinds,
    usual: measures.kinds[0]?.id ?? 'host',
    isLabelled: true,
  });
  const [pass, passes] = useSegments<Pass>('pass', {
    label: 'Pass',
    segments: measures.passes,
    usual: 'both',
  });
  const keys = useMemo(() => keysOf(table, kind, pass), [table, kind, pass]);
  const value = useCallback((at: number) => costOf(table, keys, at), [table, keys]);
  const total = useMemo(() => tree.roots.reduce((sum, at) => sum + value(at), 0), [tree, value]);
  const root = rowOf(location.options.root, table.row_count);
  const roots = useMemo(() => (root === null ? tree.roots : [root]), [root, tree]);
  const search = useDeferredValue(location.search);
  const query = useMemo(() => queryOf(table, search), [table, search]);
  const matches = useMemo(() => {
    const misses = missesOf(table, query);
    return searchTree(tree, misses && ((at) => misses[at] === 0));
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
        shown: matches?.shown ?? null,
      }),
    [tree, open, table, sort, matches],
  );
  const choice = useColumnsShown('modules', table.columns);
  const [density, setDensity] = useDensity();
  const selected = rowOf(location.options.row, table.row_count);
  const select = (at: number | null): void => {
    const options = withOptions(location.options, { row: at === null ? null : String(at) });
    const flipped = at === null ? open.flipped : withOpenPath(tree, open, at);
    go({ options: withOptions(options, { turned: flippedText(flipped) }) }, 'replace');
  };
  const { run, worker, span } = selection;
  const names = [run.name, worker.name, span.label];
  const columns = table.columns.slice(1).filter(({ key }) => choice.shown[key]);
  const measureLabel = measures.kinds.find(({ id }) => id === kind)?.title ?? '';
  return (
    <div
      className={isStale ? 'full-view column grow modules stale' : 'full-view column grow modules'}
      aria-busy={isStale}
    >
      <ViewHeader title="Modules" note={noteOf(table)}>
        {props.grouping}
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
          note="The shown modules with their paths, in full precision."
          onExport={(format) => save({ table, rows, names, shown: choice.shown, format })}
          picture={{
            element: chart,
            title: 'Modules',
            subtitle: `${run.name}, ${worker.name}: ${measureLabel}`,
            file: fileName([...names, 'modules'], 'png'),
          }}
        />
      </ViewHeader>
      <section className="bar" aria-label="Icicle">
        <div className="module-bar wrap">
          {kinds}
          {kind !== 'memory' && measures.passes.length > 0 && passes}
          <span className="muted">
            {textOf(kind, total)} in total{narrowing && `, ${narrowing.label}`}
          </span>
          <span className="space" />
          {root === null ? (
            <span className="muted">Double-click a module to zoom in</span>
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
            textOf={(at) =>
              `${textOf(kind, value(at))}, ${share(total > 0 ? value(at) / total : 0)} of all`
            }
            selected={selected}
            hits={matches?.hits ?? null}
            onSelect={(at) => select(at === selected ? null : at)}
            onZoom={(at) =>
              go({
                options: withOptions(location.options, { root: at === null ? null : String(at) }),
              })
            }
          />
        </div>
        <Origin table={table} />
        <Unassigned table={table} />
        {table.left_out_count > 0 && (
          <p className="module-note flex note">
            <Icon name="info" size={14} /> {count(table.left_out_count)} more modules are not shown;{' '}
            <code>stepscope export --table modules</code> writes all.
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
          hits={matches?.hits ?? null}
          shareOf={(at) => (total > 0 ? value(at) / total : 0)}
          shareLabel={`${measureLabel}, of all modules`}
          shareName={SHARE_NAMES[kind] ?? `Of ${table.device_label} time`}
          isOpen={(at) => matches !== null || isOpen(tree, open, at)}
          onTurn={(at, opens, deep) => setFlipped(withToggled(tree, open, { at, opens, deep }))}
          onSort={(next) => go({ sort: next }, 'replace')}
          onSelect={select}
        />
        {rows.length === 0 && (
          <div className="table-none">
            <p>No module matches “{search}”.</p>
            <Button onClick={() => go({ search: '' }, 'replace')}>Clear the search</Button>
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
