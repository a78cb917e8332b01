import type { ReactNode } from 'react';
import type { Table } from '../../api/types.gen';
import { KERNEL_IDENTITY, STREAM_IDENTITY } from '../../widgets/details/locations';
import type { ShownTable } from '../../widgets/table';
import { cellOf } from '../../widgets/table/rows';
import { UseBar } from '../../widgets/table/shares';
import { TablePage } from '../table_page';
import type { PageProps } from '../view';
import { KernelRow } from './details';
import { Durations } from './durations';

/** The name of devices in the trace, from the label of their column. */
export const deviceOf = (table: Table): string =>
  table.columns.find((column) => column.key === 'devices')?.label ?? 'device';

/** Time of the kernels that use matrix units, over the shown rows. */
function MatrixUnits({ shown }: { readonly shown: ShownTable }): ReactNode {
  const { table, rows } = shown;
  const label = table.columns.find((column) => column.key === 'uses_matrix_unit')?.label;
  if (label === undefined) return null;
  const sums = { yes: 0, no: 0, unknown: 0 };
  for (const at of rows) {
    const uses = cellOf(table, 'uses_matrix_unit', at);
    const kind = uses === 'yes' || uses === 'no' ? uses : 'unknown';
    sums[kind] += Number(cellOf(table, 'total_ns', at) ?? 0);
  }
  return (
    <UseBar
      label={label}
      of="of kernel time"
      usedNs={sums.yes}
      untoldNs={sums.unknown}
      wholeNs={sums.yes + sums.no + sums.unknown}
    />
  );
}

/** Whether durations were recorded: the range profiler measures counters instead. */
const hasTimes = (table: Table): boolean => table.values.total_ns !== undefined;

export default function Page({ selection }: PageProps): ReactNode {
  const { trace } = selection.span;
  return (
    <TablePage
      selection={selection}
      name="kernels"
      label="Kernels"
      identity={(table) => (table.group === 'stream' ? STREAM_IDENTITY : KERNEL_IDENTITY)}
      above={(shown) => <MatrixUnits shown={shown} />}
      bar={<Durations trace={trace} />}
      details={(table, at) =>
        hasTimes(table) ? (
          <KernelRow trace={trace} table={table} at={at} device={deviceOf(table)} />
        ) : (
          <p className="note">
            The profiler measured hardware counters of this kernel, and ran it again for each of
            them: the trace has no durations.
          </p>
        )
      }
    />
  );
}
