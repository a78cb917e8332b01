import { type ReactNode, useEffect, useMemo, useRef, useState } from 'react';
import { useTraceAnswer } from '../../api/queries';
import type { MemoryAllocations } from '../../api/types.gen';
import type { Spot } from '../../charts/time_series';
import { bytes, count, duration, plural } from '../../core/format';
import { useNavigation } from '../../state/navigation';
import { useOption, withOption } from '../../state/option';
import { timelinePlace } from '../../state/timeline_place';
import { Goto } from '../../widgets/goto';
import { Icon } from '../../widgets/icon';
import { Loaded } from '../../widgets/loaded';
import { Segmented } from '../../widgets/segmented';
import { StackList } from '../../widgets/stack_list';
import { DataTable, type ShownTable } from '../../widgets/table';
import { cellOf, type Rows } from '../../widgets/table/rows';
import { spotsOf } from './looked_at';
import type { Asked } from './memory';
import { searchedByServer } from './server_search';
import { sizeOf } from './sizes';

const LIMIT = 5000;
const TYPING_MS = 350;
const NONE = -1;
const WHICH = [
  { id: 'alive', label: 'Alive in it', title: 'Held at any moment of the time chosen' },
  { id: 'born', label: 'Born in it', title: 'Allocated in the time chosen' },
  { id: 'freed', label: 'Freed in it', title: 'Given back in the time chosen' },
] as const;
const STATES = [
  { id: 'all', label: 'All' },
  { id: 'freed', label: 'Freed', title: 'Allocated and freed while recording' },
  { id: 'held', label: 'Held to the end', title: 'Allocated and not freed while recording' },
  { id: 'earlier', label: 'From before', title: 'Allocated before the recording, freed in it' },
] as const;

interface SizeProps {
  readonly label: string;
  readonly option: 'min' | 'max';
  readonly placeholder: string;
}

/** A bound of sizes, as people type it; it goes into the URL once typing rests. */
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
      () => go({ options: withOption(latest.current, option, typed.trim()) }, 'replace'),
      TYPING_MS,
    );
    return () => clearTimeout(timer);
  }, [typed, option, go]);
  return (
    <label className="memory-size">
      {label}
      <input
        type="text"
        inputMode="text"
        spellCheck={false}
        placeholder={placeholder}
        value={typed}
        aria-invalid={sizeOf(typed) === undefined}
        title="A size: 4096, 64k, 1.5 MB, 2 GiB"
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
          <Goto to={timelinePlace(from, to ?? from, owner >= 0 ? owner : event)}>
            In the timeline <Icon name="arrow" size={13} />
          </Goto>
        )}
        {typeof operator === 'string' && (
          <Goto
            to={{
              view: 'operators',
              search: operator.split(' (')[0] ?? '',
              group: null,
              sort: null,
              options: {},
            }}
          >
            The operator <Icon name="arrow" size={13} />
          </Goto>
        )}
        {from !== null && (
          <Goto
            to={{
              search: '',
              sort: null,
              options: {
                ...withOption(withOption(location.options, 'row', null), 'tab', null),
                at: String(from),
              },
            }}
          >
            What was held then <Icon name="arrow" size={13} />
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
  readonly onSelected: (at: number | null, rows: Rows) => void;
}

/** Keeps the page's selected event and the chosen row the same; whichever was chosen last says. */
function Follow({ table, shown, onSelected }: FollowProps): ReactNode {
  const { location, go } = useNavigation();
  const { selected, select, rows } = shown;
  const arrived = useRef(location.event);
  const told = useRef(onSelected);
  told.current = onSelected;
  useEffect(() => {
    const wanted = arrived.current;
    arrived.current = null;
    if (wanted === null || selected !== null) return;
    const own = table.event.indexOf(wanted);
    const at = own >= 0 ? own : table.owner_event.indexOf(wanted);
    if (at >= 0) select(at);
  }, [table, selected, select]);
  // The page's event is a call, which other views know: the operator that allocated.
  const event = selected === null ? NONE : (table.owner_event[selected] ?? NONE);
  const page = useRef({ event: location.event, go });
  page.current = { event: location.event, go };
  useEffect(() => {
    if (event !== NONE && event !== page.current.event) page.current.go({ event }, 'replace');
  }, [event]);
  useEffect(() => told.current(selected, rows), [selected, rows]);
  return null;
}

function counted(table: MemoryAllocations): string {
  const { found_count, found_bytes, row_count, left_out_bytes } = table;
  const all = `${plural(found_count, 'allocation')} of ${bytes(found_bytes)} in all`;
  if (row_count >= found_count) return all;
  return `${all}; the first ${count(row_count)} are listed, the other ${count(found_count - row_count)} have ${bytes(left_out_bytes)}`;
}

interface PartProps {
  readonly asked: Asked;
  /** Is told which spots of the curve are looked at. */
  readonly onLook: (spots: readonly Spot[]) => void;
}

interface FoundProps extends PartProps {
  readonly table: MemoryAllocations;
  readonly isStale: boolean;
}

function Found({ table, asked, onLook, isStale }: FoundProps): ReactNode {
  const chosen = useRef<number | null>(null);
  const rows = useRef<Rows | null>(null);
  const hovered = useRef<number | null>(null);
  const look = (): void => {
    const at = hovered.current ?? chosen.current;
    onLook(at === null || at >= table.row_count ? [] : spotsOf(table, at));
  };
  const latest = useRef(onLook);
  latest.current = onLook;
  useEffect(() => () => latest.current([]), []);
  const { run, worker, span } = asked.selection;
  return (
    <div
      className="memory-rows"
      onPointerOver={(event) => {
        const row = (event.target as Element).closest('tr[data-at]');
        const place = row ? Number(row.getAttribute('data-at')) : Number.NaN;
        const at = rows.current?.[place] ?? null;
        if (at === hovered.current) return;
        hovered.current = at;
        look();
      }}
      onPointerLeave={() => {
        hovered.current = null;
        look();
      }}
    >
      <DataTable
        table={table}
        name="memory-allocations"
        label="Allocations"
        recording={[run.name, worker.name, span.label, table.device]}
        isStale={isStale}
        identity={['allocated_ns', 'freed_ns', 'address']}
        above={(shown) => (
          <Follow
            table={table}
            shown={shown}
            onSelected={(at, shownRows) => {
              chosen.current = at;
              rows.current = shownRows;
              look();
            }}
          />
        )}
        details={(at) => <Details table={table} at={at} />}
      />
    </div>
  );
}

/** Every allocation, the largest first: when it was born and freed, and by whom. */
export function Allocations({ asked, onLook }: PartProps): ReactNode {
  const { location } = useNavigation();
  const [which, chooseWhich] = useOption(
    'which',
    'alive',
    WHICH.map(({ id }) => id),
  );
  const [state, chooseState] = useOption(
    'state',
    'all',
    STATES.map(({ id }) => id),
  );
  const { device, narrowing, selection } = asked;
  const parameters = useMemo(() => {
    const { search, sort, options } = location;
    return {
      device,
      which: narrowing ? which : null,
      start_ns: narrowing?.start_ns,
      end_ns: narrowing?.end_ns,
      state: state === 'all' ? null : state,
      min_bytes: sizeOf(options.min ?? '') ?? null,
      max_bytes: sizeOf(options.max ?? '') ?? null,
      search: searchedByServer(search),
      sort: sort && SORTED.has(sort.key) ? sort.key : null,
      descending: sort && SORTED.has(sort.key) ? sort.descending : null,
      limit: LIMIT,
    };
  }, [location, device, narrowing, which, state]);
  const query = useTraceAnswer<MemoryAllocations>(
    selection.span.trace,
    'memory/allocations',
    parameters,
  );
  return (
    <div className="memory-part">
      <div className="memory-bar">
        <Segmented label="State" segments={STATES} value={state} onChoose={chooseState} />
        {narrowing && (
          <Segmented
            label="In the time chosen"
            segments={WHICH}
            value={which}
            onChoose={chooseWhich}
          />
        )}
        <span className="memory-sizes">
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
          <Found table={table} asked={asked} onLook={onLook} isStale={query.isPlaceholderData} />
        )}
      </Loaded>
    </div>
  );
}

/** Columns that the server sorts by, where not all rows are sent. */
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
