import { type ReactNode, useMemo, useSyncExternalStore } from 'react';
import { useTraceAnswer } from '../../api/queries';
import type { MemoryHolders } from '../../api/types.gen';
import { fillOf, type Theme } from '../../canvas/colours';
import { type Tile, Treemap } from '../../charts/treemap';
import { bytes, duration, plural, share } from '../../core/format';
import { framesOf, stackFrame } from '../../core/frames';
import { themeStore } from '../../host/theme';
import { useNavigation } from '../../state/navigation';
import { useOption, withOption } from '../../state/option';
import { Goto } from '../../widgets/goto';
import { Icon } from '../../widgets/icon';
import { Loaded } from '../../widgets/loaded';
import { Segmented } from '../../widgets/segmented';
import { StackList } from '../../widgets/stack_list';
import { DataTable, type ShownTable } from '../../widgets/table';
import { cellOf, wholeName } from '../../widgets/table/rows';
import type { Asked } from './memory';

const BY = [
  { id: 'operator', label: 'Operator', title: 'The innermost operator that allocated' },
  { id: 'module', label: 'Module', title: 'The innermost nn.Module that ran' },
  { id: 'stack', label: 'Stack', title: 'Your functions that ran' },
  { id: 'lifetime', label: 'Lifetime', title: 'When it is given back' },
  { id: 'category', label: 'Category', title: 'Parameters, activations, gradients…' },
] as const;
type By = (typeof BY)[number]['id'];
const KNOWN = BY.map(({ id }) => id);
/** The hue of a tile: that of what allocates, in every view. */
const CATEGORY: Readonly<Record<string, string>> = {
  operator: 'cpu',
  module: 'annotation',
  stack: 'python',
  lifetime: 'alloc',
};
const MOST_TILES = 80;

/** The part of a name that is read at a glance: of a stack its innermost function. */
export function shortHolder(name: string, by: string): string {
  if (by !== 'stack') return name;
  const innermost = framesOf(name).at(-1) ?? name;
  const frame = stackFrame(innermost);
  return frame ? `${frame.of} ${frame.path.split(/[/\\]/).at(-1)}:${frame.line ?? '?'}` : innermost;
}

/** A tile a holder, the smallest and those that were not sent together in a last one. */
export function tilesOf(table: MemoryHolders, by: string, theme: Theme): Tile[] {
  const rows = Array.from({ length: table.row_count }, (_, at) => at).filter(
    (at) => Number(cellOf(table, 'held_bytes', at)) > 0,
  );
  const title = (at: number): string => {
    const held = Number(cellOf(table, 'held_bytes', at));
    const part = Number(cellOf(table, 'peak_share', at) ?? 0);
    return `${wholeName(table, at).replaceAll(';', ' › ')}: ${bytes(held)}, ${share(part)}`;
  };
  const tiles = rows.slice(0, MOST_TILES).map((at) => {
    const name = wholeName(table, at);
    const isRecorded = cellOf(table, 'origin', at) === 'recorded';
    return {
      id: String(at),
      label: shortHolder(name, by),
      note: bytes(Number(cellOf(table, 'held_bytes', at))),
      title: title(at),
      value: Number(cellOf(table, 'held_bytes', at)),
      fill: fillOf(isRecorded ? (CATEGORY[by] ?? 'other') : 'other', name, theme),
      isVague: !isRecorded,
    };
  });
  const others = rows.slice(MOST_TILES);
  const count = others.length + table.left_out_count;
  const value =
    others.reduce((sum, at) => sum + Number(cellOf(table, 'held_bytes', at)), 0) +
    Math.max(0, table.left_out_bytes);
  if (value <= 0) return tiles;
  const label = plural(count, 'other');
  return [
    ...tiles,
    {
      id: 'others',
      label,
      note: bytes(value),
      title: `${label}: ${bytes(value)}`,
      value,
      fill: fillOf('other', label, theme),
      isVague: true,
    },
  ];
}

function Facts({
  table,
  asked,
}: {
  readonly table: MemoryHolders;
  readonly asked: Asked;
}): ReactNode {
  const { location, go } = useNavigation();
  const { held_bytes, reserved_bytes, recorded_bytes, earlier_bytes, untold_bytes } = table;
  const before = earlier_bytes + Math.max(0, untold_bytes ?? 0);
  const when = table.is_peak ? 'the peak' : duration(table.moment_ns);
  return (
    <p className="memory-facts">
      {held_bytes !== null && (
        <span>
          At {when}, {table.device} held <strong>{bytes(held_bytes)}</strong>
          {reserved_bytes !== null && ` of ${bytes(reserved_bytes)} reserved`}:
        </span>
      )}
      {untold_bytes === null && recorded_bytes === 0 ? (
        'who allocated it was not recorded.'
      ) : (
        <span>
          <strong>{bytes(recorded_bytes)}</strong> allocated while recording
          {before > 0 && `, ${bytes(before)} before`}.
        </span>
      )}
      {table.is_peak && (
        <Goto to={{ view: 'flame', options: { of: 'memory' } }} className="memory-flame">
          As a flame graph <Icon name="arrow" size={13} />
        </Goto>
      )}
      {asked.moment !== null && (
        <button
          type="button"
          className="button small"
          onClick={() => go({ options: withOption(location.options, 'at', null) }, 'replace')}
        >
          Back to the peak
        </button>
      )}
      {asked.moment === null && asked.narrowing && !table.is_peak && (
        <span className="muted">The most in the time chosen.</span>
      )}
    </p>
  );
}

function ByChoice(): ReactNode {
  const [by, choose] = useOption<By>('by', 'operator', KNOWN);
  return <Segmented label="By" segments={BY} value={by} onChoose={choose} isLabelled />;
}

interface TableProps {
  readonly table: MemoryHolders;
  readonly asked: Asked;
  readonly by: By;
  readonly isStale: boolean;
}

function Details({
  table,
  at,
  by,
}: {
  readonly table: MemoryHolders;
  readonly at: number;
  readonly by: By;
}): ReactNode {
  const { location } = useNavigation();
  const name = wholeName(table, at);
  if (cellOf(table, 'origin', at) !== 'recorded') return null;
  if (by === 'lifetime' || name.startsWith('(')) return null;
  const word = by === 'stack' ? framesOf(name).at(-1) : name.split(' (')[0];
  return (
    <>
      {by === 'stack' && <StackList stack={name} />}
      <p className="memory-links">
        <Goto
          to={{
            search: by === 'operator' ? `"${name}"` : (word ?? ''),
            options: { ...withOption(location.options, 'row', null), tab: 'allocations' },
            sort: null,
          }}
        >
          Its allocations <Icon name="arrow" size={13} />
        </Goto>
        {by === 'operator' && (
          <Goto
            to={{ view: 'operators', search: word ?? '', group: null, sort: null, options: {} }}
          >
            The operator <Icon name="arrow" size={13} />
          </Goto>
        )}
        {by === 'module' && (
          <Goto
            to={{
              view: 'modules',
              search: shortHolder(name, by),
              group: null,
              sort: null,
              options: {},
            }}
          >
            The module <Icon name="arrow" size={13} />
          </Goto>
        )}
      </p>
    </>
  );
}

function Found({ table, asked, by, isStale }: TableProps): ReactNode {
  const theme = useSyncExternalStore(themeStore.subscribe, themeStore.current);
  const tiles = useMemo(() => tilesOf(table, by, theme), [table, by, theme]);
  const { run, worker, span } = asked.selection;
  const map = ({ selected, select }: ShownTable): ReactNode => (
    <div className="memory-map">
      <Facts table={table} asked={asked} />
      <Treemap
        tiles={tiles}
        label={`Who held the memory, by ${by}`}
        selected={selected === null ? null : String(selected)}
        onSelect={(id) => {
          if (id !== 'others') select(Number(id) === selected ? null : Number(id));
        }}
      />
    </div>
  );
  return (
    <DataTable
      table={table}
      name={`memory-holders-${by}`}
      label={table.is_peak ? 'Held at the peak' : `Held at ${duration(table.moment_ns)}`}
      tools={<ByChoice />}
      recording={[run.name, worker.name, span.label, table.device]}
      isStale={isStale}
      identity={by === 'stack' ? ['full_name', 'origin'] : ['name', 'origin']}
      above={map}
      details={(at) => <Details table={table} at={at} by={by} />}
    />
  );
}

/** Who held the memory when most was held, or at the moment looked at: as areas and as a table. */
export function Holders({ asked }: { readonly asked: Asked }): ReactNode {
  const [by] = useOption<By>('by', 'operator', KNOWN);
  const { device, moment, narrowing, selection } = asked;
  const { start_ns, end_ns } = narrowing ?? {};
  const query = useTraceAnswer<MemoryHolders>(selection.span.trace, 'memory/holders', {
    device,
    by,
    moment_ns: moment,
    start_ns,
    end_ns,
  });
  return (
    <div className="memory-part">
      {!query.data && (
        <div className="memory-bar">
          <ByChoice />
        </div>
      )}
      <Loaded query={query} what="Who held the memory">
        {(table) => (
          <Found table={table} asked={asked} by={by} isStale={query.isPlaceholderData} key={by} />
        )}
      </Loaded>
    </div>
  );
}
