import type { ReactNode } from 'react';
import type { DeviceReport, Overview } from '../../api/types.gen';
import { Bullet } from '../../charts/bullet';
import { bytes } from '../../core/format';
import { Card } from '../../widgets/card';

type ShareField =
  | 'busy_share'
  | 'kernel_busy_share'
  | 'sm_efficiency_share'
  | 'occupancy_share'
  | 'tensor_core_share';

const FIGURES: readonly (readonly [ShareField, string, string])[] = [
  ['busy_share', 'Busy', 'Fraction of the window in which a kernel, a copy or a memory set ran.'],
  ['kernel_busy_share', 'Kernels', 'Fraction of the window in which a kernel ran.'],
  [
    'sm_efficiency_share',
    'SM efficiency',
    'Estimated fraction of the multiprocessors with work, over the window.',
  ],
  ['occupancy_share', 'Occupancy', 'Estimated achieved occupancy while kernels ran.'],
  [
    'tensor_core_share',
    'Tensor cores',
    'Fraction of the kernel time in kernels that use matrix units.',
  ],
];

function Memory({ device }: { readonly device: DeviceReport }): ReactNode {
  const { memory_peak_bytes: peak, memory_capacity_bytes: capacity, notes } = device;
  const help =
    'Peak memory of the device: reserved, or allocated if that was not recorded. The bar is its fraction of the capacity.';
  const isMeasured = peak !== null && capacity !== null && capacity > 0;
  if (peak !== null && !isMeasured) {
    return (
      <div className="bullet">
        <span className="muted" title={help}>
          Memory peak
        </span>
        <span />
        <span className="number strong">{bytes(peak)}</span>
        {notes.memory_peak_bytes && <span className="bullet-note">{notes.memory_peak_bytes}</span>}
      </div>
    );
  }
  return (
    <Bullet
      label="Memory peak"
      help={help}
      value={isMeasured ? peak / capacity : null}
      text={isMeasured ? bytes(peak) : undefined}
      note={notes.memory_peak_bytes ?? notes.memory_capacity_bytes}
    />
  );
}

interface DeviceProps {
  readonly device: DeviceReport;
  readonly label: string;
}

/** The doubts that several figures have, each with their names. */
function sharedDoubts(device: DeviceReport): Map<string, readonly string[]> {
  const doubts = new Map<string, readonly string[]>();
  for (const [field, title] of FIGURES) {
    const note = device[field] === null ? undefined : device.notes[field];
    if (note) doubts.set(note, [...(doubts.get(note) ?? []), title]);
  }
  return new Map([...doubts].filter(([, names]) => names.length > 1));
}

function Device({ device, label }: DeviceProps): ReactNode {
  const doubts = sharedDoubts(device);
  return (
    <Card
      className="device"
      title={device.name}
      note={`${label} ${device.id}${device.memory_capacity_bytes === null ? '' : `, ${bytes(device.memory_capacity_bytes)}`}`}
    >
      {FIGURES.map(([field, title, help]) => (
        <Bullet
          key={field}
          label={title}
          help={help}
          value={device[field]}
          note={
            device[field] !== null && doubts.has(device.notes[field] ?? '')
              ? undefined
              : device.notes[field]
          }
        />
      ))}
      <Memory device={device} />
      {[...doubts].map(([note, names]) => (
        <p key={note} className="bullet-note bullet-doubts">
          {names.join(', ')}: {note}
        </p>
      ))}
    </Card>
  );
}

/** The utilization of each device. */
export function Devices({ overview }: { readonly overview: Overview }): ReactNode {
  if (overview.devices.length === 0) {
    return (
      <Card title="No accelerator in this trace">
        <p className="muted">
          The trace has no GPU events. If the model runs on a GPU, add ProfilerActivity.CUDA (or
          XPU) to the activities of the profiler.
        </p>
      </Card>
    );
  }
  return overview.devices.map((device) => (
    <Device key={device.id} device={device} label={overview.device_label} />
  ));
}
