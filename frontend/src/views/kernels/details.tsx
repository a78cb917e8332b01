import type { ReactNode } from 'react';
import { useNarrowing, useTraceAnswer } from '../../api/queries';
import type { KernelDetails, KernelLaunch, StreamUse, Table } from '../../api/types.gen';
import { Histogram } from '../../charts/histogram';
import { bytes, count, duration, quantityExact } from '../../core/format';
import { Instances, Related, Section, ShareRow, Stacks, Steps } from '../../widgets/details/parts';
import { callersInFlame } from '../../widgets/details/places';
import { Loaded } from '../../widgets/loaded';
import { cellOf } from '../../widgets/table/rows';

const dimensions = (json: string): string => json.replaceAll(/[[\]\s]/g, '').replaceAll(',', ' × ');

interface LaunchesProps {
  readonly launches: readonly KernelLaunch[];
  readonly all: number;
}

/** By grid, block, registers and shared memory: whether shapes differ, and what each costs. */
function Launches({ launches, all }: LaunchesProps): ReactNode {
  if (launches.length === 0 || launches.every((launch) => launch.grid === '')) return null;
  const note = all > launches.length ? `the costliest ${launches.length} of ${count(all)}` : '';
  return (
    <Section title="How it is launched" note={note}>
      <div className="scroll-x">
        <table className="plain instances">
          <thead>
            <tr>
              <th scope="col">Grid</th>
              <th scope="col">Block</th>
              <th scope="col" className="number" title="Registers a thread">
                Regs
              </th>
              <th scope="col" className="number" title="Shared memory a block">
                Shared
              </th>
              <th scope="col" className="number">
                Runs
              </th>
              <th scope="col" className="number">
                Mean
              </th>
              <th scope="col" className="number">
                Total
              </th>
            </tr>
          </thead>
          <tbody>
            {launches.map((launch) => (
              <tr
                key={[
                  launch.grid,
                  launch.block,
                  launch.registers_per_thread,
                  launch.shared_memory_bytes,
                ].join()}
              >
                <td>{dimensions(launch.grid)}</td>
                <td>{dimensions(launch.block)}</td>
                <td className="number">{launch.registers_per_thread ?? '–'}</td>
                <td className="number">
                  {launch.shared_memory_bytes === null ? '–' : bytes(launch.shared_memory_bytes)}
                </td>
                <td className="number">{count(launch.call_count)}</td>
                <td className="number" title={quantityExact(launch.mean_ns, 'ns')}>
                  {duration(launch.mean_ns)}
                </td>
                <td className="number" title={quantityExact(launch.total_ns, 'ns')}>
                  {duration(launch.total_ns)}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Section>
  );
}

interface StreamsProps {
  readonly streams: readonly StreamUse[];
  readonly totalNs: number;
  readonly device: string;
}

function Streams({ streams, totalNs, device }: StreamsProps): ReactNode {
  if (streams.length < 2) return null;
  return (
    <Section title="Streams">
      <ul className="share-rows">
        {streams.map((each) => {
          const stream = each.stream < 0 ? 'stream not recorded' : `stream ${each.stream}`;
          const name = `${device} ${each.device}, ${stream}`;
          return (
            <ShareRow
              key={name}
              name={name}
              title={`${name}\n${quantityExact(each.total_ns, 'ns')}`}
              share={totalNs > 0 ? each.total_ns / totalNs : 0}
              ns={each.total_ns}
              calls={each.call_count}
            />
          );
        })}
      </ul>
    </Section>
  );
}

interface ReportProps {
  readonly details: KernelDetails;
  readonly device: string;
}

export function KernelReport({ details, device }: ReportProps): ReactNode {
  const totalNs = details.durations.total_ns;
  return (
    <>
      <Section title="How long it runs">
        <Histogram of={details.durations} what="run" label="duration" />
      </Section>
      <Steps steps={details.steps} what="run" />
      <Related title="Launched by" rows={details.operators} none="no operator is known" />
      <Launches launches={details.launches} all={details.launch_count} />
      <Streams streams={details.streams} totalNs={totalNs} device={device} />
      {details.delays && (
        <Section title="Launch delay" note="from the launching call’s end to its begin">
          <Histogram of={details.delays} what="run" label="delay" />
        </Section>
      )}
      <Stacks
        stacks={details.stacks}
        all={details.stack_count}
        missing={details.stacks_missing}
        totalNs={totalNs}
        inFlame={callersInFlame(details.full_name, 'device')}
      />
      <Instances
        title="The longest runs"
        rows={details.instances}
        hasDevice={false}
        device={device}
      />
    </>
  );
}

/** What of a row tells it from others of its name, by the table's grouping. */
function chosenBy(table: Table, at: number): Readonly<Record<string, string | number>> {
  const text = (key: string): string => String(cellOf(table, key, at) ?? '');
  if (table.group === 'launch') {
    return { operator: text('operator'), grid: text('grid'), block: text('block') };
  }
  if (table.group === 'stream') {
    return { device: Number(text('devices')), stream: Number(text('streams')) };
  }
  return {};
}

interface Props {
  readonly trace: string;
  readonly table: Table;
  readonly at: number;
  readonly device: string;
}

/** Everything about the kernel of a row. */
export function KernelRow({ trace, table, at, device }: Props): ReactNode {
  const narrowing = useNarrowing(trace);
  const query = useTraceAnswer<KernelDetails>(
    trace,
    'kernels/details',
    {
      full_name: String(cellOf(table, 'full_name', at) ?? ''),
      ...chosenBy(table, at),
      start_ns: narrowing?.start_ns,
      end_ns: narrowing?.end_ns,
    },
    { enabled: narrowing !== undefined },
  );
  return (
    <Loaded query={query} what="The kernel">
      {(details) => <KernelReport details={details} device={device} />}
    </Loaded>
  );
}
