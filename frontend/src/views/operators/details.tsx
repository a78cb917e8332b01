import type { ReactNode } from 'react';
import { useNarrowing, useTraceQuery } from '../../api/queries';
import type { OperatorDetails } from '../../api/types.gen';
import { Histogram } from '../../charts/histogram';
import { count, duration, quantityExact, share } from '../../core/format';
import { callersInFlame, kernelLocation } from '../../widgets/details/locations';
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
import { Goto } from '../../widgets/goto';
import { Loaded } from '../../widgets/loaded';
import { cellOf } from '../../widgets/table/rows';
import type { DetailsProps } from '../table_page';

function shapeRows({ shapes, host }: OperatorDetails): ShareRow[] {
  return shapes.map(({ input_dims, input_types, host_total_ns, device_total_ns, call_count }) => {
    const dims = input_dims || 'no inputs';
    const times = `${quantityExact(host_total_ns, 'ns')} on the host, ${quantityExact(device_total_ns, 'ns')} on devices`;
    return {
      key: `${input_dims} ${input_types}`,
      title: `${dims}\n${input_types}\n${times}`,
      name: <span className="mono">{dims}</span>,
      share: host.total_ns > 0 ? host_total_ns / host.total_ns : 0,
      ns: host_total_ns,
      calls: call_count,
    };
  });
}

const kernelRows = ({ kernels }: OperatorDetails): ShareRow[] =>
  kernels.map(({ kind, name, full_name, own_ns, total_ns, share: part, event_count }) => ({
    key: `${kind} ${full_name}`,
    title: `${full_name}\n${duration(total_ns)}, of which ${duration(own_ns)} launched by the operator itself`,
    name: kind === 'kernel' ? <Goto to={kernelLocation(full_name)}>{name}</Goto> : name,
    share: part,
    ns: total_ns,
    calls: event_count,
  }));

interface ReportProps {
  readonly details: OperatorDetails;
  readonly device: string;
}

export function OperatorReport({ details, device }: ReportProps): ReactNode {
  const { host } = details;
  return (
    <>
      <Section title="Host time per call">
        <Histogram of={host} what="call" label="host total" />
      </Section>
      {details.device && (
        <Section
          title={`${device} time per call`}
          note={`${share(details.device.count / host.count)} of the calls launch work`}
        >
          <Histogram of={details.device} what="call" label={`${device} total`} />
        </Section>
      )}
      <Steps steps={details.steps} what="call" />
      <ShareRows
        title="Device work"
        note={cutNote(details.kernels.length, details.kernel_count) ?? 'including callees'}
        rows={kernelRows(details)}
      />
      <ShareRows
        title="Input shapes"
        note={cutNote(details.shapes.length, details.shape_count) ?? count(details.shape_count)}
        rows={shapeRows(details)}
      />
      <Related title="Called by" rows={details.callers} none="nothing recorded" />
      <Related title="Calls" rows={details.callees} none="" />
      <Stacks
        stacks={details.stacks}
        all={details.stack_count}
        missing={details.stacks_missing}
        totalNs={host.total_ns}
        inFlame={callersInFlame(details.name, 'host')}
      />
      <Instances
        title="Longest calls"
        rows={details.instances}
        hasDevice={details.device !== null}
        device={device}
      />
    </>
  );
}

const LABELS: Readonly<Record<string, string>> = {
  shape: 'input_dims',
  stack: 'stack',
  module: 'module',
};

const REPLAYED = 'replayed';

const NOT_ATTRIBUTED = 'replayed graph, not attributed';

/** Where an operator has no call on the host: its kernels ran in replays of a graph. */
export function ReplayedOperator({ name }: { readonly name: string }): ReactNode {
  const kernels = { view: 'kernels', group: 'launch', search: name };
  const ofRun = { view: 'tables', options: { table: 'graph-operators' } };
  return (
    <Section title="Replayed graph">
      {name === NOT_ATTRIBUTED ? (
        <p>
          The trace has neither the capture of the graph nor an eager pass with the same kernels. If
          another trace of the run has one of them, the operators are in the table{' '}
          <Goto to={ofRun}>graph-operators</Goto>.
        </p>
      ) : (
        <p>
          Its kernels ran in replays of a graph, which the host launches in one call. The operator
          is from the capture of the graph, or from an eager pass with the same kernels.
        </p>
      )}
      <p>
        <Goto to={kernels}>Kernels by launch</Goto>
      </p>
    </Section>
  );
}

/** The details of the operator of a row. */
export function OperatorRow(props: DetailsProps): ReactNode {
  const { table, at } = props;
  return cellOf(table, 'kind', at) === REPLAYED ? (
    <ReplayedOperator name={String(cellOf(table, 'name', at) ?? '')} />
  ) : (
    <CalledOperator {...props} />
  );
}

function CalledOperator({ trace, table, at, device }: DetailsProps): ReactNode {
  const narrowing = useNarrowing(trace);
  const label = LABELS[table.group];
  const query = useTraceQuery(
    trace,
    'operators/details',
    {
      name: String(cellOf(table, 'name', at) ?? ''),
      kind: String(cellOf(table, 'kind', at) ?? 'operator'),
      group: table.group,
      label: label === undefined ? '' : String(cellOf(table, label, at) ?? ''),
      start_ns: narrowing?.start_ns,
      end_ns: narrowing?.end_ns,
    },
    { enabled: narrowing !== undefined },
  );
  return (
    <Loaded query={query} what="The operator">
      {(details) => <OperatorReport details={details} device={device} />}
    </Loaded>
  );
}
