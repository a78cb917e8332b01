import type { ReactNode } from 'react';
import { useNarrowing, useTraceQuery } from '../../api/queries';
import type { KernelDetails, KernelLaunch, Table } from '../../api/types.gen';
import { Histogram } from '../../charts/histogram';
import { bytes, count, duration, quantityExact } from '../../core/format';
import { callersInFlame } from '../../widgets/details/locations';
import {
  cutNote,
  Instances,
  Related,
  Section,
  type ShareRow,
  ShareRows,
  Stacks,
  Steps,
} from '../../widgets/details/parts';
import { Loaded } from '../../widgets/loaded';
import { PlainTable } from '../../widgets/plain_table';
import { cellOf } from '../../widgets/table/rows';
import type { DetailsProps } from '../table_page';

const dimensions = (json: string): string => json.replaceAll(/[[\]\s]/g, '').replaceAll(',', ' × ');

interface LaunchesProps {
  readonly launches: readonly KernelLaunch[];
  readonly all: number;
}

/** Launch configurations: grid, block, registers and shared memory, with their times. */
function Launches({ launches, all }: LaunchesProps): ReactNode {
  if (launches.length === 0 || launches.every((launch) => launch.grid === '')) return null;
  return (
    <Section title="Launch configurations" note={cutNote(launches.length, all)}>
      <div className="scroll-x">
        <PlainTable
          className="plain instances"
          rows={launches}
          keyOf={(launch) =>
            [
              launch.grid,
              launch.block,
              launch.registers_per_thread,
              launch.shared_memory_bytes,
            ].join()
          }
          columns={[
            { label: 'Grid', cell: ({ grid }) => dimensions(grid) },
            { label: 'Block', cell: ({ block }) => dimensions(block) },
            {
              label: <span title="Registers per thread">Regs</span>,
              isNumber: true,
              cell: ({ registers_per_thread }) => registers_per_thread ?? '–',
            },
            {
              label: <span title="Shared memory per block">Shared</span>,
              isNumber: true,
              cell: ({ shared_memory_bytes: shared }) => (shared === null ? '–' : bytes(shared)),
            },
            { label: 'Runs', isNumber: true, cell: ({ call_count }) => count(call_count) },
            {
              label: 'Mean',
              isNumber: true,
              title: ({ mean_ns }) => quantityExact(mean_ns, 'ns'),
              cell: ({ mean_ns }) => duration(mean_ns),
            },
            {
              label: 'Total',
              isNumber: true,
              title: ({ total_ns }) => quantityExact(total_ns, 'ns'),
              cell: ({ total_ns }) => duration(total_ns),
            },
          ]}
        />
      </div>
    </Section>
  );
}

function streamRows({ streams, durations }: KernelDetails, device: string): ShareRow[] {
  if (streams.length < 2) return [];
  return streams.map((use) => {
    const stream = use.stream < 0 ? 'stream not recorded' : `stream ${use.stream}`;
    const name = `${device} ${use.device}, ${stream}`;
    return {
      key: name,
      name,
      title: `${name}\n${quantityExact(use.total_ns, 'ns')}`,
      share: durations.total_ns > 0 ? use.total_ns / durations.total_ns : 0,
      ns: use.total_ns,
      calls: use.call_count,
    };
  });
}

interface ReportProps {
  readonly details: KernelDetails;
  readonly device: string;
}

export function KernelReport({ details, device }: ReportProps): ReactNode {
  const totalNs = details.durations.total_ns;
  return (
    <>
      <Section title="Duration">
        <Histogram of={details.durations} what="run" label="duration" />
      </Section>
      <Steps steps={details.steps} what="run" />
      <Related title="Launched by" rows={details.operators} none="no operator recorded" />
      <Launches launches={details.launches} all={details.launch_count} />
      <ShareRows title="Streams" rows={streamRows(details, device)} />
      {details.delays && (
        <Section title="Launch delay" note="from the end of the launching call to the start">
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
      <Instances title="Longest runs" rows={details.instances} hasDevice={false} device={device} />
    </>
  );
}

/** The parameters that identify a row, by the grouping of the table. */
function rowParameters(table: Table, at: number): Readonly<Record<string, string | number>> {
  const text = (key: string): string => String(cellOf(table, key, at) ?? '');
  if (table.group === 'launch') {
    return { operator: text('operator'), grid: text('grid'), block: text('block') };
  }
  if (table.group === 'stream') {
    return { device: Number(text('devices')), stream: Number(text('streams')) };
  }
  return {};
}

/** The details of the kernel of a row. */
export function KernelRow({ trace, table, at, device }: DetailsProps): ReactNode {
  const narrowing = useNarrowing(trace);
  const query = useTraceQuery(
    trace,
    'kernels/details',
    {
      full_name: String(cellOf(table, 'full_name', at) ?? ''),
      ...rowParameters(table, at),
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
