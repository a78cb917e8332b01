import { type ReactNode, useEffect, useMemo, useRef, useState } from 'react';
import { useTraceQuery } from '../../api/queries';
import type { MemoryAllocations } from '../../api/types.gen';
import type { Spot } from '../../charts/time_series_types';
import { bytes, count, duration, plural } from '../../core/format';
import { useNavigation } from '../../state/navigation';
import { withOptions } from '../../state/option';
import { timelineLocation } from '../../state/timeline_location';
import { Goto } from '../../widgets/goto';
import { Icon } from '../../widgets/icon';
import { Loaded } from '../../widgets/loaded';
import { useSegments } from '../../widgets/segmented';
import { StackList } from '../../widgets/stack_list';
import { DataTable, type ShownTable } from '../../widgets/table';
import { cellOf } from '../../widgets/table/rows';
import { type MemoryScope, serverSearch, sizeOf, spotsOf, traceNames } from './scope';

const LIMIT = 5000;
const TYPING_MS = 350;
const NONE = -1;
const PERIODS = [
  { id: 'alive', label: 'Live', title: 'Live at any moment of the selected time' },
  { id: 'born', label: 'Allocated', title: 'Allocated in the selected time' },
  { id: 'freed', label: 'Freed', title: 'Freed in the selected time' },
] as const;
const STATES = [
  { id: 'all', label: 'All' },
  { id: 'freed', label: 'Freed', title: 'Allocated and freed in the trace' },
  { id: 'held', label: 'Never freed', title: 'Allocated and not freed in the trace' },
  { id: 'earlier', label: 'Allocated before', title: 'Allocated before the trace, freed in it' },
] as const;

interface SizeProps {
  readonly label: string;
  readonly option: 'min' | 'max';
  readonly placeholder: string;
}

/** A bound of sizes; it goes into the URL once typing pauses. */
function SizeField({ label, option, placeholder }: SizeProps): ReactNode {
  const { location, go } = useNavigation();
  const inUrl = location.options[option] ?? '';
  const [typed, setTyped] = useState(inUrl);
  const latest = useRef(location.options);
  latest.current = location.options;
  useEffect(() => setTyped(inUrl), [inUrl]);
  useEffect(() => {
    if (typed === (latest.current[option] ?? '') || sizeOf(typed) === undefined) return undefined;
    const timer = setTimeout(
      () => go({ options: withOptions(latest.current, { [option]: typed.trim() }) }, 'replace'),
      TYPING_MS,
    );
    return () => clearTimeout(timer);
  }, [typed, option, go]);
  return (
    <label className="memory-size inline muted">
      {label}
      <input
        type="text"
        inputMode="text"
        spellCheck={false}
        placeholder={placeholder}
        value={typed}
        aria-invalid={sizeOf(typed) === undefined}
        title="A size: 4096, 64 KiB, 1.5 MiB, 2 GiB"
        onChange={(event) => setTyped(event.target.value)}
      />
    </label>
  );
}

interface LinksProps {
  readonly table: MemoryAllocations;
  readonly at: number;
}

function Details({ table, at }: LinksProps): ReactNode {
  const stack = table.stacks[table.stack[at] ?? -1];
  const owner = table.owner_event[at] ?? -1;
  const born = cellOf(table, 'allocated_ns', at);
  const freed = cellOf(table, 'freed_ns', at);
  const operator = cellOf(table, 'operator', at);
  const from = typeof born === 'number' ? born : typeof freed === 'number' ? freed : null;
  const to = typeof freed === 'number' ? freed : from;
  const event = table.event[at] ?? null;
  const { location } = useNavigation();
  return (
    <>
      <p className="memory-links">
        {from !== null && (
          <Goto to={timelineLocation(from, to ?? from, owner >= 0 ? owner : event)}>
            In the timeline <Icon name="arrow" size={13} />
          </Goto>
        )}
        {typeof operator === 'string' && (
          <Goto to={{ view: 'operators', search: operator.split(' (')[0] ?? '' }}>
            The operator <Icon name="arrow" size={13} />
          </Goto>
        )}
        {from !== null && (
          <Goto
            to={{
              search: '',
              sort: null,
              options: withOptions(location.options, { row: null, tab: null, at: String(from) }),
            }}
          >
            Memory at that time <Icon name="arrow" size={13} />
          </Goto>
        )}
      </p>
      {stack === undefined ? null : <StackList stack={stack} />}
    </>
  );
}

interface FollowProps {
  readonly table: MemoryAllocations;
  readonly shown: ShownTable;
  readonly onSelected: (at: number | null) => void;
}

/** Keeps the selected event of the page and the selected row in step; the last selection wins. */
function Follow({ table, shown, onSelected }: FollowProps): ReactNode {
  const { location, go } = useNavigation();
  const { selected, select } = shown;
  const arrived = useRef(location.event);
  const latest = useRef(onSelected);
  latest.current = onSelected;
  useEffect(() => {
    const requested = arrived.current;
    arrived.current = null;
    if (requested === null || selected !== null) return;
    const direct = table.event.indexOf(requested);
    const at = direct >= 0 ? direct : table.owner_event.indexOf(requested);
    if (at >= 0) select(at);
  }, [table, selected, select]);
  // The event of the page is the allocating operator, which other views show.
  const event = selected === null ? NONE : (table.owner_event[selected] ?? NONE);
  const page = useRef({ event: location.event, go });
  page.current = { event: location.event, go };
  useEffect(() => {
    if (event !== NONE && event !== page.current.event) page.current.go({ event }, 'replace');
  }, [event]);
  useEffect(() => latest.current(selected), [selected]);
  return null;
}

function counted(table: MemoryAllocations): string {
  const { found_count, found_bytes, row_count, left_out_bytes } = table;
  const all = `${plural(found_count, 'allocation')} of ${bytes(found_bytes)} in total`;
  if (row_count >= found_count) return all;
  return `${all}; the first ${count(row_count)} are listed, the other ${count(found_count - row_count)} have ${bytes(left_out_bytes)}`;
}

interface PartProps {
  readonly scope: MemoryScope;
  /** Receives the points of the curve to highlight. */
  readonly onLook: (spots: readonly Spot[]) => void;
}

interface FilledProps extends PartProps {
  readonly table: MemoryAllocations;
  readonly isStale: boolean;
}

function Filled({ table, scope, onLook, isStale }: FilledProps): ReactNode {
  const selectedRow = useRef<number | null>(null);
  const hovered = useRef<number | null>(null);
  const look = (): void => {
    const at = hovered.current ?? selectedRow.current;
    onLook(at === null || at >= table.row_count ? [] : spotsOf(table, at));
  };
  const latest = useRef(onLook);
  latest.current = onLook;
  useEffect(() => () => latest.current([]), []);
  return (
    <div className="memory-rows column">
      <DataTable
        table={table}
        name="memory-allocations"
        label="Allocations"
        traceName={traceNames(scope)}
        isStale={isStale}
        identity={['allocated_ns', 'freed_ns', 'address']}
        onHover={(at) => {
          hovered.current = at;
          look();
        }}
        above={(shown) => (
          <Follow
            table={table}
            shown={shown}
            onSelected={(at) => {
              selectedRow.current = at;
              look();
            }}
          />
        )}
        details={(at) => <Details table={table} at={at} />}
      />
    </div>
  );
}

/** All allocations, the largest first. */
export function Allocations({ scope, onLook }: PartProps): ReactNode {
  const { location } = useNavigation();
  const [period, periods] = useSegments('which', {
    label: 'In the selected time',
    segments: PERIODS,
  });
  const [state, states] = useSegments('state', { label: 'State', segments: STATES });
  const { device, narrowing, selection } = scope;
  const parameters = useMemo(() => {
    const { search, sort, options } = location;
    return {
      device,
      which: narrowing ? period : null,
      start_ns: narrowing?.start_ns,
      end_ns: narrowing?.end_ns,
      state: state === 'all' ? null : state,
      min_bytes: sizeOf(options.min ?? '') ?? null,
      max_bytes: sizeOf(options.max ?? '') ?? null,
      search: serverSearch(search),
      sort: sort && SORTED.has(sort.key) ? sort.key : null,
      descending: sort && SORTED.has(sort.key) ? sort.descending : null,
      limit: LIMIT,
    };
  }, [location, device, narrowing, period, state]);
  const query = useTraceQuery(selection.span.trace, 'memory/allocations', parameters);
  return (
    <div className="memory-part column grow">
      <div className="memory-bar wrap">
        {states}
        {narrowing && periods}
        <span className="flex">
          <SizeField label="From" option="min" placeholder="0 B" />
          <SizeField
            label="to"
            option="max"
            placeholder={query.data ? bytes(query.data.largest_bytes) : ''}
          />
        </span>
        {query.data && (
          <p className="memory-facts" role="status">
            {counted(query.data)}
            {narrowing && `, ${duration(narrowing.start_ns)} – ${duration(narrowing.end_ns)}`}
          </p>
        )}
      </div>
      <Loaded query={query} what="Allocations">
        {(table) => (
          <Filled table={table} scope={scope} onLook={onLook} isStale={query.isPlaceholderData} />
        )}
      </Loaded>
    </div>
  );
}

/** Columns that the server can sort by when it does not send all rows. */
const SORTED: ReadonlySet<string> = new Set([
  'operator',
  'bytes',
  'allocated_ns',
  'freed_ns',
  'lifetime_ns',
  'module',
  'function',
  'state',
  'freed_in',
  'thread',
  'address',
  'allocated_level_bytes',
  'freed_level_bytes',
]);
