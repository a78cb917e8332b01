import type { ReactNode } from 'react';
import type { DeviceReport, Overview } from '../../api/types.gen';
import { Bullet } from '../../charts/bullet';
import { bytes } from '../../core/format';

type ShareField =
  | 'busy_share'
  | 'kernel_busy_share'
  | 'sm_efficiency_share'
  | 'occupancy_share'
  | 'tensor_core_share';

const FIGURES: readonly (readonly [ShareField, string, string])[] = [
  ['busy_share', 'Busy', 'Share of the window in which a kernel, a copy or a memory set ran.'],
  ['kernel_busy_share', 'Kernels', 'Share of the window in which a kernel ran.'],
  [
    'sm_efficiency_share',
    'SM efficiency',
    'Estimated share of the multiprocessors that had work, over the window.',
  ],
  ['occupancy_share', 'Occupancy', 'Estimated achieved occupancy while kernels ran.'],
  ['tensor_core_share', 'Tensor cores', 'Share of kernel time in kernels that use matrix units.'],
];

function Memory({ device }: { readonly device: DeviceReport }): ReactNode {
  const { memory_peak_bytes: peak, memory_capacity_bytes: capacity, notes } = device;
  const help =
    'Most that torch had taken from the device at once: reserved, or where that is not recorded allocated. The bar is its share of what the device has.';
  const isMeasured = peak !== null && capacity !== null && capacity > 0;
  if (peak !== null && !isMeasured) {
    return (
      <div className="bullet">
        <span className="bullet-label" title={help}>
          Memory peak
        </span>
        <span />
        <span className="bullet-value">{bytes(peak)}</span>
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

function Device({
  device,
  label,
}: {
  readonly device: DeviceReport;
  readonly label: string;
}): ReactNode {
  return (
    <section className="card device">
      <div className="card-head">
        <h2>{device.name}</h2>
        <p>
          {label} {device.id}
          {device.memory_capacity_bytes !== null && `, ${bytes(device.memory_capacity_bytes)}`}
        </p>
      </div>
      {FIGURES.map(([field, title, help]) => (
        <Bullet
          key={field}
          label={title}
          help={help}
          value={device[field]}
          note={device.notes[field]}
        />
      ))}
      <Memory device={device} />
    </section>
  );
}

/** How each device was used. */
export function Devices({ overview }: { readonly overview: Overview }): ReactNode {
  if (overview.devices.length === 0) {
    return (
      <section className="card">
        <div className="card-head">
          <h2>No accelerator in this trace</h2>
        </div>
        <p className="muted">
          Nothing ran on a GPU while it was recorded. If the model is on one, add
          ProfilerActivity.CUDA (or XPU) to the profiler’s activities.
        </p>
      </section>
    );
  }
  return overview.devices.map((device) => (
    <Device key={device.id} device={device} label={overview.device_label} />
  ));
}
