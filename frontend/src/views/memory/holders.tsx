import { type ReactNode, useMemo } from 'react';
import { useTraceQuery } from '../../api/queries';
import type { MemoryHolders } from '../../api/types.gen';
import { fillOf, type Theme } from '../../canvas/colours';
import { type Tile, Treemap } from '../../charts/treemap';
import { bytes, duration, plural, share } from '../../core/format';
import { framesOf, stackFrame } from '../../core/frames';
import { useTheme } from '../../host/theme';
import { useNavigation } from '../../state/navigation';
import { withOptions } from '../../state/option';
import { Button } from '../../widgets/button';
import { Goto } from '../../widgets/goto';
import { Icon } from '../../widgets/icon';
import { Loaded } from '../../widgets/loaded';
import { useSegments } from '../../widgets/segmented';
import { StackList } from '../../widgets/stack_list';
import { DataTable, type ShownTable } from '../../widgets/table';
import { cellOf, wholeName } from '../../widgets/table/rows';
import { type MemoryScope, traceNames } from './scope';

const BY = [
  { id: 'operator', label: 'Operator', title: 'The innermost operator that allocated' },
  { id: 'module', label: 'Module', title: 'The innermost nn.Module that ran' },
  { id: 'stack', label: 'Stack', title: 'Your functions that ran' },
  { id: 'lifetime', label: 'Lifetime', title: 'When it is freed' },
  { id: 'category', label: 'Category', title: 'Parameters, activations, gradients…' },
] as const;
type By = (typeof BY)[number]['id'];
/** The colour category of tiles, as in the other views. */
const CATEGORY: Readonly<Record<string, string>> = {
  operator: 'cpu',
  module: 'annotation',
  stack: 'python',
  lifetime: 'alloc',
};
const MOST_TILES = 80;

/** A short name; for a stack its innermost function. */
export function shortHolder(name: string, by: string): string {
  if (by !== 'stack') return name;
  const innermost = framesOf(name).at(-1) ?? name;
  const frame = stackFrame(innermost);
  return frame ? `${frame.of} ${frame.path.split(/[/\\]/).at(-1)}:${frame.line ?? '?'}` : innermost;
}

/** One tile per holder; the last one sums the smallest and those not sent. */
export function tilesOf(table: MemoryHolders, by: string, theme: Theme): Tile[] {
  const rows = Array.from({ length: table.row_count }, (_, at) => at).filter(
    (at) => Number(cellOf(table, 'held_bytes', at)) > 0,
  );
  const title = (at: number): string => {
    const size = Number(cellOf(table, 'held_bytes', at));
    const part = Number(cellOf(table, 'peak_share', at) ?? 0);
    return `${wholeName(table, at).replaceAll(';', ' › ')}: ${bytes(size)}, ${share(part)}`;
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

interface PartProps {
  readonly table: MemoryHolders;
  readonly scope: MemoryScope;
}

function Facts({ table, scope }: PartProps): ReactNode {
  const { location, go } = useNavigation();
  const { held_bytes, reserved_bytes, recorded_bytes, earlier_bytes, unrecorded_bytes } = table;
  const before = earlier_bytes + Math.max(0, unrecorded_bytes ?? 0);
  const when = table.is_peak ? 'the peak' : duration(table.moment_ns);
  return (
    <p className="memory-facts">
      {held_bytes !== null && (
        <span>
          At {when}, {table.device} had <strong>{bytes(held_bytes)}</strong> allocated
          {reserved_bytes !== null && ` of ${bytes(reserved_bytes)} reserved`}:{' '}
        </span>
      )}
      {unrecorded_bytes === null && recorded_bytes === 0 ? (
        'its allocations were not recorded.'
      ) : (
        <span>
          <strong>{bytes(recorded_bytes)}</strong> allocated while profiling
          {before > 0 && `, ${bytes(before)} before`}.
        </span>
      )}
      {table.is_peak && (
        <Goto to={{ view: 'flame', options: { of: 'memory' } }} className="memory-flame inline">
          As a flame graph <Icon name="arrow" size={13} />
        </Goto>
      )}
      {scope.moment !== null && (
        <Button
          small
          onClick={() => go({ options: withOptions(location.options, { at: null }) }, 'replace')}
        >
          Back to the peak
        </Button>
      )}
      {scope.moment === null && scope.narrowing && !table.is_peak && (
        <span className="muted">The peak in the selected time.</span>
      )}
    </p>
  );
}

const useBy = () => useSegments<By>('by', { label: 'By', segments: BY, isLabelled: true });

interface TableProps extends PartProps {
  readonly by: By;
  readonly choice: ReactNode;
  readonly isStale: boolean;
}

interface DetailsProps extends Pick<TableProps, 'table' | 'by'> {
  readonly at: number;
}

function Details({ table, at, by }: DetailsProps): ReactNode {
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
            options: withOptions(location.options, { row: null, tab: 'allocations' }),
            sort: null,
          }}
        >
          Its allocations <Icon name="arrow" size={13} />
        </Goto>
        {by === 'operator' && (
          <Goto to={{ view: 'operators', search: word ?? '' }}>
            The operator <Icon name="arrow" size={13} />
          </Goto>
        )}
        {by === 'module' && (
          <Goto to={{ view: 'modules', search: shortHolder(name, by) }}>
            The module <Icon name="arrow" size={13} />
          </Goto>
        )}
      </p>
    </>
  );
}

function Filled({ table, scope, by, choice, isStale }: TableProps): ReactNode {
  const theme = useTheme();
  const tiles = useMemo(() => tilesOf(table, by, theme), [table, by, theme]);
  const map = ({ selected, select }: ShownTable): ReactNode => (
    <div className="memory-map bar column">
      <Facts table={table} scope={scope} />
      <Treemap
        tiles={tiles}
        label={`Memory by ${by}`}
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
      label={table.is_peak ? 'Allocated at the peak' : `Allocated at ${duration(table.moment_ns)}`}
      tools={choice}
      traceName={traceNames(scope)}
      isStale={isStale}
      identity={by === 'stack' ? ['full_name', 'origin'] : ['name', 'origin']}
      above={map}
      details={(at) => <Details table={table} at={at} by={by} />}
    />
  );
}

/** The allocated memory at the peak or at the selected moment, as a treemap and as a table. */
export function Holders({ scope }: { readonly scope: MemoryScope }): ReactNode {
  const [by, choice] = useBy();
  const { device, moment, narrowing, selection } = scope;
  const { start_ns, end_ns } = narrowing ?? {};
  const query = useTraceQuery(selection.span.trace, 'memory/holders', {
    device,
    by,
    moment_ns: moment,
    start_ns,
    end_ns,
  });
  return (
    <div className="memory-part column grow">
      {!query.data && <div className="memory-bar wrap">{choice}</div>}
      <Loaded query={query} what="The allocated memory">
        {(table) => (
          <Filled {...{ table, scope, by, choice }} isStale={query.isPlaceholderData} key={by} />
        )}
      </Loaded>
    </div>
  );
}
