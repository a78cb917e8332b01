import type { ReactNode } from 'react';
import { useNarrowing, useTraceQuery } from '../../api/queries';
import type { OperatorDetails, ShapeUse } from '../../api/types.gen';
import { Histogram } from '../../charts/histogram';
import { count, duration, quantityExact, share } from '../../core/format';
import { callersInFlame, kernelLocation } from '../../widgets/details/locations';
import { Instances, Related, Section, ShareRow, Stacks, Steps } from '../../widgets/details/parts';
import { Goto } from '../../widgets/goto';
import { Loaded } from '../../widgets/loaded';
import { cellOf } from '../../widgets/table/rows';
import type { DetailsProps } from '../table_page';

interface ShapesProps {
  readonly shapes: readonly ShapeUse[];
  readonly all: number;
  readonly totalNs: number;
}

function Shapes({ shapes, all, totalNs }: ShapesProps): ReactNode {
  if (shapes.length === 0) return null;
  return (
    <Section
      title="Input shapes"
      note={
        all > shapes.length ? `the ${shapes.length} most expensive of ${count(all)}` : count(all)
      }
    >
      <ul className="share-rows">
        {shapes.map((shape) => (
          <ShareRow
            key={`${shape.input_dims} ${shape.input_types}`}
            title={`${shape.input_dims || 'no inputs'}\n${shape.input_types}\n${quantityExact(shape.host_total_ns, 'ns')} on the host, ${quantityExact(shape.device_total_ns, 'ns')} on devices`}
            name={<span className="mono">{shape.input_dims || 'no inputs'}</span>}
            share={totalNs > 0 ? shape.host_total_ns / totalNs : 0}
            ns={shape.host_total_ns}
            calls={shape.call_count}
          />
        ))}
      </ul>
    </Section>
  );
}

function Kernels({ details }: { readonly details: OperatorDetails }): ReactNode {
  const { kernels, kernel_count: all } = details;
  if (kernels.length === 0) return null;
  const isCut = all > kernels.length;
  return (
    <Section
      title="Device work"
      note={isCut ? `the ${kernels.length} most expensive of ${count(all)}` : 'including callees'}
    >
      <ul className="share-rows">
        {kernels.map((kernel) => (
          <ShareRow
            key={`${kernel.kind} ${kernel.full_name}`}
            title={`${kernel.full_name}\n${duration(kernel.total_ns)}, of which ${duration(kernel.own_ns)} launched by the operator itself`}
            name={
              kernel.kind === 'kernel' ? (
                <Goto to={kernelLocation(kernel.full_name)}>{kernel.name}</Goto>
              ) : (
                kernel.name
              )
            }
            share={kernel.share}
            ns={kernel.total_ns}
            calls={kernel.event_count}
          />
        ))}
      </ul>
    </Section>
  );
}

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
      <Kernels details={details} />
      <Shapes shapes={details.shapes} all={details.shape_count} totalNs={host.total_ns} />
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

/** The details of the operator of a row. */
export function OperatorRow({ trace, table, at, device }: DetailsProps): ReactNode {
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
