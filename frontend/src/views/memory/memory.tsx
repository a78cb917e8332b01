import { type ReactNode, useMemo, useRef, useState } from 'react';
import { type Narrowing, useNarrowing, useRunAnswer, useTraceAnswer } from '../../api/queries';
import type { MemoryDeviceFacts, MemoryFiles, MemoryOverTime } from '../../api/types.gen';
import type { Spot } from '../../charts/time_series';
import { fileName } from '../../core/export';
import { bytes, count, duration, plural, share } from '../../core/format';
import { useNavigation } from '../../state/navigation';
import { withOption } from '../../state/option';
import type { Selection } from '../../state/selection';
import { ExportMenu } from '../../widgets/export_menu';
import { Failure } from '../../widgets/failure';
import { Icon } from '../../widgets/icon';
import { Skeleton } from '../../widgets/loaded';
import { Picker } from '../../widgets/picker';
import { Segmented } from '../../widgets/segmented';
import { type Tab, Tabs } from '../../widgets/tabs';
import { ViewHeader } from '../../widgets/view_header';
import { Allocations } from './allocations';
import { ByOperator } from './by_operator';
import { ALLOCATED, Curve, RESERVED } from './curve';
import { Files } from './files';
import { Fragmentation } from './fragmentation';
import { Growth } from './growth';
import { Holders } from './holders';
import './memory.css';

const PIXELS = 1600;
const FEW_DEVICES = 4;

/** What every part of the view is asked about. */
export interface Asked {
  readonly selection: Selection;
  readonly device: string;
  readonly narrowing: Narrowing | null;
  /** The moment that is looked at, in place of the peak. */
  readonly moment: number | null;
}

function DeviceChoice({
  devices,
  device,
}: {
  readonly devices: readonly MemoryDeviceFacts[];
  readonly device: string;
}): ReactNode {
  const { location, go } = useNavigation();
  const choose = (id: string): void => {
    const options = withOption(withOption(location.options, 'at', null), 'row', null);
    go({ options: { ...options, device: id } });
  };
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
    return `${facts.id}: at most ${bytes(peak_bytes)} more than at the beginning, at ${duration(peak_ns)}`;
  }
  return `${facts.id}: peak ${bytes(peak_bytes)} at ${duration(peak_ns)}${reserved}${ofAll}`;
}

interface RangeBarProps {
  readonly curve: MemoryOverTime;
  readonly narrowing: Narrowing | null;
}

/** The legend, and what the time chosen on the curve means. */
function RangeBar({ curve, narrowing }: RangeBarProps): ReactNode {
  const { location, go } = useNavigation();
  const isZoomed = location.options.zoom === 'range';
  const zoom = (value: string | null): void =>
    go({ options: withOption(location.options, 'zoom', value) }, 'replace');
  const whole = (): void =>
    go({ time: null, step: null, options: withOption(location.options, 'zoom', null) });
  const drawn = curve.levels.time_ns.length;
  return (
    <div className="memory-legend">
      <span className="memory-key">
        <span className="swatch" style={{ background: ALLOCATED }} /> Allocated
      </span>
      {curve.levels.reserved_bytes.length > 0 && (
        <span className="memory-key">
          <span className="swatch" style={{ background: RESERVED }} /> Reserved
        </span>
      )}
      <span className="muted">
        {count(curve.levels.event_count)} allocations and releases
        {drawn < curve.levels.event_count && '; every pixel keeps its highest and lowest'}
      </span>
      <span className="space" />
      {narrowing ? (
        <>
          <span className="memory-range">{narrowing.label}</span>
          <button
            type="button"
            className="button small"
            onClick={() => zoom(isZoomed ? null : 'range')}
          >
            <Icon name="zoom" size={14} /> {isZoomed ? 'Zoom out' : 'Zoom in'}
          </button>
          <button type="button" className="button small" onClick={whole}>
            Whole recording
          </button>
        </>
      ) : (
        <span className="muted">Drag to choose a time, press to look at a moment</span>
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

/** Another part of the view has other columns: what was searched, sorted and chosen stays behind, but for what a link says. */
function useFreshTab(): void {
  const { location, go } = useNavigation();
  const last = useRef(location);
  const before = last.current;
  last.current = location;
  if ((before.options.tab ?? 'peak') === (location.options.tab ?? 'peak')) return;
  const { search, sort, options } = location;
  const isLeft = {
    search: search !== '' && search === before.search,
    sort: sort !== null && sort.key === before.sort?.key,
    row: options.row !== undefined && options.row === before.options.row,
  };
  if (!(isLeft.search || isLeft.sort || isLeft.row)) return;
  queueMicrotask(() =>
    go(
      {
        ...(isLeft.search ? { search: '' } : {}),
        ...(isLeft.sort ? { sort: null } : {}),
        ...(isLeft.row ? { options: withOption(options, 'row', null) } : {}),
      },
      'replace',
    ),
  );
}

function momentOf(text: string | undefined): number | null {
  return text && /^\d{1,15}$/.test(text) ? Number(text) : null;
}

interface FoundProps {
  readonly selection: Selection;
  readonly curve: MemoryOverTime;
  readonly narrowing: Narrowing | null;
  readonly files: number;
  readonly isStale: boolean;
}

function Found({ selection, curve, narrowing, files, isStale }: FoundProps): ReactNode {
  const { location } = useNavigation();
  const chart = useRef<HTMLDivElement>(null);
  const [spots, setSpots] = useState<readonly Spot[]>([]);
  const moment = momentOf(location.options.at);
  const asked = useMemo(
    () => ({ selection, device: curve.device, narrowing, moment }),
    [selection, curve.device, narrowing, moment],
  );
  useFreshTab();
  const { run, worker, span } = selection;
  const names = [run.name, worker.name, span.label, 'memory', curve.device];
  const parts: Record<TabId, () => ReactNode> = {
    peak: () => <Holders asked={asked} />,
    allocations: () => <Allocations asked={asked} onLook={setSpots} />,
    operators: () => <ByOperator asked={asked} />,
    growth: () => <Growth asked={asked} />,
    fragmentation: () => <Fragmentation asked={asked} />,
    files: () => <Files selection={selection} />,
  };
  return (
    <div className="full-view memory">
      <ViewHeader title="Memory" note={noteOf(curve)}>
        <DeviceChoice devices={curve.devices} device={curve.device} />
        <ExportMenu
          note="The curve as it is drawn. The tables below have exports of their own."
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
          <p key={note} className="memory-note">
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
  fragmented: 'so much lay unused, but in pieces too small',
  full: 'not so much was unused, and the device had no more',
  unknown: 'the totals were not recorded',
};

/** When the device ran out, in words: the lines on the curve have no room for why. */
function Ooms({ curve }: { readonly curve: MemoryOverTime }): ReactNode {
  const [first] = curve.ooms;
  if (!first) return null;
  const { asked_bytes, unused_bytes, cause, operator, time_ns } = first;
  return (
    <p className="memory-note memory-oom">
      <Icon name="critical" size={14} /> Out of memory
      {curve.oom_count > 1 && ` ${plural(curve.oom_count, 'time')}, first`} at {duration(time_ns)}
      {operator !== null && ` in ${operator}`}
      {asked_bytes !== null && `, which asked for ${bytes(asked_bytes)}`}
      {unused_bytes !== null && ` while ${bytes(unused_bytes)} lay unused`}:{' '}
      {CAUSES[cause] ?? cause}.
    </p>
  );
}

/** A device's memory: over time, who held it, what was allocated, whether it grows. */
export function Memory({ selection }: { readonly selection: Selection }): ReactNode {
  const { location } = useNavigation();
  const { trace } = selection.span;
  const narrowing = useNarrowing(trace);
  const usual = useTraceAnswer<MemoryOverTime>(trace, 'memory/curve', { pixels: PIXELS });
  const files = useRunAnswer<MemoryFiles>(
    selection.run,
    `runs/${encodeURIComponent(selection.run.id)}/memory-files`,
  );
  const wanted = location.options.device;
  const device = usual.data?.devices.find(({ id }) => id === wanted)?.id ?? usual.data?.device;
  const isZoomed = location.options.zoom === 'range' && narrowing;
  const { start_ns, end_ns } = isZoomed || {};
  const isUsual = device === usual.data?.device && !isZoomed;
  const chosen = useTraceAnswer<MemoryOverTime>(
    trace,
    'memory/curve',
    { pixels: PIXELS, device, start_ns, end_ns },
    { enabled: usual.data !== undefined && !isUsual },
  );
  const query = isUsual ? usual : chosen;
  const fileCount = files.data?.files.length ?? 0;
  const error = usual.error ?? (isUsual ? null : chosen.error);
  if (error) {
    return (
      <div className="page stack">
        <ViewHeader title="Memory" />
        <Failure error={error} what="Memory" retry={() => void usual.refetch()} />
        {fileCount > 0 && (
          <section className="card memory-beside">
            <div className="card-head">
              <h2>Beside the recording</h2>
              <p>Memory snapshots and timelines in the run’s folder</p>
            </div>
            <Files selection={selection} />
          </section>
        )}
      </div>
    );
  }
  const curve = query.data ?? usual.data;
  if (!curve || narrowing === undefined) return <Skeleton />;
  return (
    <Found
      selection={selection}
      curve={curve}
      narrowing={narrowing}
      files={fileCount}
      isStale={query.isPlaceholderData}
    />
  );
}
