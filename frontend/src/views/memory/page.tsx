import { type ReactNode, useMemo, useRef, useState } from 'react';
import { type Narrowing, useNarrowing, useRunQuery, useTraceQuery } from '../../api/queries';
import type { MemoryDeviceFacts, MemoryOverTime } from '../../api/types.gen';
import type { Spot } from '../../charts/time_series_types';
import { fileName } from '../../core/export';
import { bytes, count, duration, plural, share } from '../../core/format';
import { useNavigation } from '../../state/navigation';
import { useChangeOptions, withOptions } from '../../state/option';
import type { Selection } from '../../state/selection';
import { Button } from '../../widgets/button';
import { Card } from '../../widgets/card';
import { ExportMenu } from '../../widgets/export_menu';
import { Failure } from '../../widgets/failure';
import { Icon } from '../../widgets/icon';
import { Skeleton } from '../../widgets/loaded';
import { Picker } from '../../widgets/picker';
import { Segmented } from '../../widgets/segmented';
import { type Tab, Tabs } from '../../widgets/tabs';
import { ViewHeader } from '../../widgets/view_header';
import type { PageProps } from '../view';
import { Allocations } from './allocations';
import { ByOperator } from './by_operator';
import { ALLOCATED, LegendKey, RESERVED } from './chart';
import { Curve } from './curve';
import { Files } from './files';
import { Fragmentation } from './fragmentation';
import { Growth } from './growth';
import { Holders } from './holders';
import './memory.css';

const PIXELS = 1600;
const FEW_DEVICES = 4;

interface DeviceProps {
  readonly devices: readonly MemoryDeviceFacts[];
  readonly device: string;
}

function DeviceChoice({ devices, device }: DeviceProps): ReactNode {
  const change = useChangeOptions();
  const choose = (id: string): void => change({ at: null, row: null, device: id }, 'push');
  if (devices.length < 2) return null;
  if (devices.length <= FEW_DEVICES) {
    const segments = devices.map(({ id }) => ({ id, label: id }));
    return <Segmented label="Device" segments={segments} value={device} onChoose={choose} />;
  }
  const choices = devices.map(({ id, peak_bytes }) => ({
    key: id,
    label: id,
    note: `peak ${bytes(peak_bytes)}`,
  }));
  return <Picker label="Device" choices={choices} value={device} onChoose={choose} />;
}

function noteOf(curve: MemoryOverTime): string {
  const facts = curve.devices.find(({ id }) => id === curve.device);
  if (!facts) return curve.device;
  const { peak_bytes, peak_ns, most_reserved_bytes, capacity_bytes, has_totals } = facts;
  const reserved = most_reserved_bytes === null ? '' : `, reserved ${bytes(most_reserved_bytes)}`;
  const ofAll =
    capacity_bytes === null
      ? ''
      : ` of ${bytes(capacity_bytes)} (${share((most_reserved_bytes ?? peak_bytes) / capacity_bytes)})`;
  if (!has_totals) {
    return `${facts.id}: peak ${bytes(peak_bytes)} above the start, at ${duration(peak_ns)}`;
  }
  return `${facts.id}: peak ${bytes(peak_bytes)} at ${duration(peak_ns)}${reserved}${ofAll}`;
}

interface RangeBarProps {
  readonly curve: MemoryOverTime;
  readonly narrowing: Narrowing | null;
}

/** The legend, and the selected time with its buttons. */
function RangeBar({ curve, narrowing }: RangeBarProps): ReactNode {
  const { location, go } = useNavigation();
  const isZoomed = location.options.zoom === 'range';
  const zoom = (value: string | null): void =>
    go({ options: withOptions(location.options, { zoom: value }) }, 'replace');
  const whole = (): void =>
    go({ time: null, step: null, options: withOptions(location.options, { zoom: null }) });
  const drawn = curve.levels.time_ns.length;
  return (
    <div className="memory-legend wrap">
      <LegendKey label="Allocated" colour={ALLOCATED} />
      {curve.levels.reserved_bytes.length > 0 && <LegendKey label="Reserved" colour={RESERVED} />}
      <span className="muted">
        {count(curve.levels.event_count)} allocations and releases
        {drawn < curve.levels.event_count &&
          '; drawn with the highest and lowest value of every pixel'}
      </span>
      <span className="space" />
      {narrowing ? (
        <>
          <span className="memory-range">{narrowing.label}</span>
          <Button small onClick={() => zoom(isZoomed ? null : 'range')}>
            <Icon name="zoom" size={14} /> {isZoomed ? 'Zoom out' : 'Zoom in'}
          </Button>
          <Button small onClick={whole}>
            Whole trace
          </Button>
        </>
      ) : (
        <span className="muted">Drag to select a time range, click to select a moment</span>
      )}
    </div>
  );
}

type TabId = 'peak' | 'allocations' | 'operators' | 'growth' | 'fragmentation' | 'files';

function tabsOf(moment: number | null, files: number): [Tab<TabId>, ...Tab<TabId>[]] {
  const tabs: [Tab<TabId>, ...Tab<TabId>[]] = [
    { id: 'peak', label: moment === null ? 'At the peak' : `At ${duration(moment)}` },
    { id: 'allocations', label: 'Allocations' },
    { id: 'operators', label: 'By operator' },
    { id: 'growth', label: 'Growth and leaks' },
    { id: 'fragmentation', label: 'Fragmentation' },
  ];
  if (files > 0) tabs.push({ id: 'files', label: 'Snapshots and timelines', count: files });
  return tabs;
}

/** Clears search, sorting and row when the tab changes, unless a link sets them. */
function useFreshTab(): void {
  const { location, go } = useNavigation();
  const last = useRef(location);
  const before = last.current;
  last.current = location;
  if ((before.options.tab ?? 'peak') === (location.options.tab ?? 'peak')) return;
  const { search, sort, options } = location;
  const isStale = {
    search: search !== '' && search === before.search,
    sort: sort !== null && sort.key === before.sort?.key,
    row: options.row !== undefined && options.row === before.options.row,
  };
  if (!(isStale.search || isStale.sort || isStale.row)) return;
  queueMicrotask(() =>
    go(
      {
        ...(isStale.search ? { search: '' } : {}),
        ...(isStale.sort ? { sort: null } : {}),
        ...(isStale.row ? { options: withOptions(options, { row: null }) } : {}),
      },
      'replace',
    ),
  );
}

function momentOf(text: string | undefined): number | null {
  return text && /^\d{1,15}$/.test(text) ? Number(text) : null;
}

interface FilledProps {
  readonly selection: Selection;
  readonly curve: MemoryOverTime;
  readonly narrowing: Narrowing | null;
  readonly files: number;
  readonly isStale: boolean;
}

function Filled({ selection, curve, narrowing, files, isStale }: FilledProps): ReactNode {
  const { location } = useNavigation();
  const chart = useRef<HTMLDivElement>(null);
  const [spots, setSpots] = useState<readonly Spot[]>([]);
  const moment = momentOf(location.options.at);
  const scope = useMemo(
    () => ({ selection, device: curve.device, narrowing, moment }),
    [selection, curve.device, narrowing, moment],
  );
  useFreshTab();
  const { run, worker, span } = selection;
  const names = [run.name, worker.name, span.label, 'memory', curve.device];
  const parts: Record<TabId, () => ReactNode> = {
    peak: () => <Holders scope={scope} />,
    allocations: () => <Allocations scope={scope} onLook={setSpots} />,
    operators: () => <ByOperator scope={scope} />,
    growth: () => <Growth scope={scope} />,
    fragmentation: () => <Fragmentation scope={scope} />,
    files: () => <Files selection={selection} />,
  };
  return (
    <div className="full-view column grow memory">
      <ViewHeader title="Memory" note={noteOf(curve)}>
        <DeviceChoice devices={curve.devices} device={curve.device} />
        <ExportMenu
          note="The curve as shown. The tables below have their own exports."
          picture={{
            element: chart,
            title: `Memory of ${curve.device}`,
            subtitle: `${run.name}, ${worker.name}: ${noteOf(curve)}`,
            legend: [
              { label: 'Allocated', colour: ALLOCATED },
              ...(curve.levels.reserved_bytes.length > 0
                ? [{ label: 'Reserved', colour: RESERVED }]
                : []),
            ],
            file: fileName(names, 'png'),
          }}
        />
      </ViewHeader>
      <section className={isStale ? 'memory-curve stale' : 'memory-curve'} aria-label="Over time">
        <div ref={chart}>
          <Curve curve={curve} narrowing={narrowing} moment={moment} spots={spots} />
        </div>
        <RangeBar curve={curve} narrowing={narrowing} />
        {curve.notes.map((note) => (
          <p key={note} className="memory-note flex note">
            <Icon name="info" size={14} /> {note}
          </p>
        ))}
        {curve.oom_count > 0 && <Ooms curve={curve} />}
      </section>
      <Tabs label="Parts of the memory" tabs={tabsOf(moment, files)}>
        {(tab) => parts[tab]()}
      </Tabs>
    </div>
  );
}

const CAUSES: Readonly<Record<string, string>> = {
  fragmented: 'enough memory was unused, but in pieces too small',
  full: 'not enough memory was unused, and the device had no more',
  unknown: 'the totals were not recorded',
};

/** The first out-of-memory error, with its cause. */
function Ooms({ curve }: { readonly curve: MemoryOverTime }): ReactNode {
  const [first] = curve.ooms;
  if (!first) return null;
  const { asked_bytes, unused_bytes, cause, operator, time_ns } = first;
  return (
    <p className="memory-note flex note memory-oom">
      <Icon name="critical" size={14} /> Out of memory
      {curve.oom_count > 1 && ` ${plural(curve.oom_count, 'time')}, first`} at {duration(time_ns)}
      {operator !== null && ` in ${operator}`}
      {asked_bytes !== null && `, which requested ${bytes(asked_bytes)}`}
      {unused_bytes !== null && ` while ${bytes(unused_bytes)} were unused`}:{' '}
      {CAUSES[cause] ?? cause}.
    </p>
  );
}

/** The memory of a device: over time, by holder, by allocation, and its growth. */
function Memory({ selection }: PageProps): ReactNode {
  const { location } = useNavigation();
  const { trace } = selection.span;
  const narrowing = useNarrowing(trace);
  const unzoomed = useTraceQuery(trace, 'memory/curve', { pixels: PIXELS });
  const files = useRunQuery(selection.run, 'runs/{run}/memory-files');
  const requested = location.options.device;
  const device =
    unzoomed.data?.devices.find(({ id }) => id === requested)?.id ?? unzoomed.data?.device;
  const isZoomed = location.options.zoom === 'range' && narrowing;
  const { start_ns, end_ns } = isZoomed || {};
  const isDefault = device === unzoomed.data?.device && !isZoomed;
  const zoomed = useTraceQuery(
    trace,
    'memory/curve',
    { pixels: PIXELS, device, start_ns, end_ns },
    { enabled: unzoomed.data !== undefined && !isDefault },
  );
  const query = isDefault ? unzoomed : zoomed;
  const fileCount = files.data?.files.length ?? 0;
  const error = unzoomed.error ?? (isDefault ? null : zoomed.error);
  if (error) {
    return (
      <div className="page stack">
        <ViewHeader title="Memory" />
        <Failure error={error} what="Memory" retry={() => void unzoomed.refetch()} />
        {fileCount > 0 && (
          <Card
            className="memory-beside"
            title="Memory files"
            note="Snapshots and timelines in the folder of the run"
          >
            <Files selection={selection} />
          </Card>
        )}
      </div>
    );
  }
  const curve = query.data ?? unzoomed.data;
  if (!curve || narrowing === undefined) return <Skeleton />;
  return (
    <Filled
      selection={selection}
      curve={curve}
      narrowing={narrowing}
      files={fileCount}
      isStale={query.isPlaceholderData}
    />
  );
}

export default function Page(props: PageProps): ReactNode {
  return <Memory {...props} key={props.selection.span.trace} />;
}
