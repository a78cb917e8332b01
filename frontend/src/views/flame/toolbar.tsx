/** The controls of the flame graph: subject, measure, direction, frames, baseline. */
import type { ReactNode } from 'react';
import type { FlameGraph } from '../../api/types.gen';
import { duration } from '../../core/format';
import { useNavigation } from '../../state/navigation';
import { useChangeOptions, withOptions } from '../../state/option';
import { Icon } from '../../widgets/icon';
import { Menu } from '../../widgets/menu';
import { Segmented } from '../../widgets/segmented';
import type { Comparison } from './baseline';
import { defaultInstances, type FlameSettings, hasWaits } from './requests';

const SUBJECTS = [
  { id: 'calls', label: 'Calls', title: 'Python functions, operators and runtime calls' },
  { id: 'modules', label: 'Modules', title: 'Forward and backward passes by module' },
  { id: 'memory', label: 'Memory', title: 'The memory of a device at its peak' },
] as const;
const MEASURES = [
  { id: 'host', label: 'Host time', title: 'Host time of each call' },
  { id: 'device', label: 'Device time', title: 'Device time by the call that launched it' },
] as const;
const DIRECTIONS = [
  { id: 'callees', label: 'Callees', title: 'From the outermost call inwards' },
  {
    id: 'callers',
    label: 'Callers',
    title: 'Inverted: from the self value of each function to its callers',
  },
] as const;
const FRAMES = {
  all: 'All frames',
  user: 'Your Python',
  python: 'Python and modules',
  modules: 'Modules',
  operators: 'Operators',
} as const;
const PHASES = {
  all: 'Forward and backward',
  forward: 'Forward',
  backward: 'Backward',
  rerun: 'Recomputation',
} as const;

interface SelectProps<T extends string> {
  readonly label: string;
  readonly value: T;
  readonly options: Readonly<Record<T, string>>;
  readonly onChoose: (value: T) => void;
}

function Select<T extends string>({ label, value, options, onChoose }: SelectProps<T>): ReactNode {
  const entries = Object.entries(options) as [T, string][];
  return (
    <select
      aria-label={label}
      title={label}
      value={value}
      onChange={(event) => onChoose(event.target.value as T)}
    >
      {entries.map(([id, text]) => (
        <option key={id} value={id}>
          {text}
        </option>
      ))}
    </select>
  );
}

const unlessDefault = (value: string, usual: string): string | null =>
  value === usual ? null : value;

interface Props {
  readonly settings: FlameSettings;
  readonly graph: FlameGraph | undefined;
  readonly comparison: Comparison;
  readonly isNarrowed: boolean;
}

function SubjectControls({ settings, graph }: Props): ReactNode {
  const change = useChangeOptions();
  const { subject } = settings;
  if (subject === 'memory') {
    const devices = graph?.devices ?? [];
    if (devices.length < 2) return null;
    return (
      <Select
        label="Device"
        value={graph?.device ?? ''}
        options={Object.fromEntries(devices.map((device) => [device, device]))}
        onChoose={(device) => change({ device, root: null })}
      />
    );
  }
  return (
    <>
      <Segmented
        label="Measure"
        segments={MEASURES}
        value={settings.measure}
        onChoose={(measure) => change({ measure: unlessDefault(measure, 'host') })}
      />
      {subject === 'modules' && (
        <Select
          label="Pass"
          value={settings.phase}
          options={PHASES}
          onChoose={(phase) => change({ phase: unlessDefault(phase, 'all') })}
        />
      )}
    </>
  );
}

/** All threads, or one; two traces have no threads in common. */
function ThreadPicker({ settings, graph, comparison }: Props): ReactNode {
  const change = useChangeOptions();
  const threads = graph?.threads ?? [];
  const { thread } = settings;
  if (settings.subject !== 'calls' || comparison.baseline?.kind === 'trace') return null;
  if (threads.length < 2 && thread === null) return null;
  const isListed = thread === null || threads.some(({ name }) => name === thread);
  return (
    <select
      className="flame-threads"
      aria-label="Thread"
      title="Threads with their time"
      value={thread ?? ''}
      onChange={(event) => change({ thread: event.target.value || null, root: null })}
    >
      <option value="">All threads</option>
      {!isListed && <option value={thread}>{thread}: nothing here</option>}
      {threads.map(({ name, label, total_ns }) => (
        <option key={name} value={name}>
          {label}: {duration(total_ns)}
        </option>
      ))}
    </select>
  );
}

function CompareMenu({ comparison }: { readonly comparison: Comparison }): ReactNode {
  const { location, go } = useNavigation();
  const { label: against, choices } = comparison;
  return (
    <Menu
      title="Compare with another trace or another step"
      label={
        <>
          <Icon name="compare" size={15} />
          <span className="flame-base">{against ? `Compared with ${against}` : 'Compare'}</span>
        </>
      }
    >
      <div className="flame-choices">
        {choices.map(({ id, label, patch }) => (
          <button
            type="button"
            key={id}
            className="option"
            onClick={(event) => {
              event.currentTarget.closest('details')?.removeAttribute('open');
              const diff = id === '' ? null : id === 'step' ? 'step' : 'base';
              go({ ...patch, sort: null, options: withOptions(location.options, { diff }) });
            }}
          >
            {label}
          </button>
        ))}
      </div>
      {choices.length < 2 && <p className="menu-note note">There is no other trace.</p>}
    </Menu>
  );
}

function hasModules(graph: FlameGraph | undefined): boolean {
  const module = graph?.kinds.findIndex(({ id }) => id === 'module') ?? -1;
  return graph?.name_kinds.includes(module) ?? false;
}

export function Toolbar(props: Props): ReactNode {
  const { settings, comparison, graph, isNarrowed } = props;
  const change = useChangeOptions();
  const canBePerStep = settings.subject !== 'memory' && !isNarrowed && comparison.baseline === null;
  return (
    <div className="bar wrap">
      <Segmented
        label="Subject"
        segments={SUBJECTS}
        value={settings.subject}
        onChoose={(of) =>
          change({ of: unlessDefault(of, 'calls'), name: null, root: null, instances: null })
        }
      />
      <SubjectControls {...props} />
      <Segmented
        label="Direction"
        segments={DIRECTIONS}
        value={settings.direction}
        onChoose={(direction) =>
          change({ direction: unlessDefault(direction, 'callees'), root: null })
        }
      />
      {settings.subject !== 'modules' && (
        <Select
          label="Frames"
          value={settings.frames}
          options={FRAMES}
          onChoose={(frames) => change({ frames: unlessDefault(frames, 'all'), root: null })}
        />
      )}
      <ThreadPicker {...props} />
      {hasWaits(settings) && ((graph?.waiting ?? 0) > 0 || settings.hidesWaits) && (
        <label
          className="flame-check inline"
          title="Hide the time in which a thread waits: for a lock, another process, a timer, or a device (synchronize), and the DataLoader for its workers"
        >
          <input
            type="checkbox"
            checked={settings.hidesWaits}
            onChange={(event) =>
              change({ waits: event.target.checked ? 'hidden' : null, root: null })
            }
          />
          Hide idle
        </label>
      )}
      {canBePerStep && (graph?.steps ?? 0) > 0 && (
        <label className="flame-check inline" title="Only complete steps, divided by their number">
          <input
            type="checkbox"
            checked={settings.isPerStep}
            onChange={(event) => change({ per: event.target.checked ? 'step' : null })}
          />
          Per step
        </label>
      )}
      {hasModules(graph) && (
        <label
          className="flame-check inline"
          title="Show Linear_0 and Linear_1 as one frame, Linear"
        >
          <input
            type="checkbox"
            checked={settings.isByClass}
            onChange={(event) => {
              const instances = event.target.checked ? 'merged' : 'apart';
              const usual = defaultInstances(settings.subject);
              change({ instances: unlessDefault(instances, usual), root: null });
            }}
          />
          Merge instances
        </label>
      )}
      <CompareMenu comparison={comparison} />
    </div>
  );
}
