import type { ReactNode } from 'react';
import { useTableData } from '../../api/queries';
import type { Table } from '../../api/types.gen';
import { useNavigation } from '../../state/navigation';
import { KERNEL_IDENTITY, STREAM_IDENTITY } from '../../widgets/details/places';
import { Loaded } from '../../widgets/loaded';
import { DataTable, type ShownTable } from '../../widgets/table';
import { Refused } from '../../widgets/table/refused';
import { cellOf } from '../../widgets/table/rows';
import { Shares, UseBar } from '../../widgets/table/shares';
import type { PageProps } from '../view';
import { KernelRow } from './details';

/** What the recording calls its devices: the column of their numbers is named so. */
export const deviceOf = (table: Table): string =>
  table.columns.find((column) => column.key === 'devices')?.label ?? 'device';

/** Time of the kernels that use matrix units, over the rows shown. */
function MatrixUnits({ shown }: { readonly shown: ShownTable }): ReactNode {
  const { table, rows } = shown;
  const label = table.columns.find((column) => column.key === 'uses_matrix_unit')?.label;
  if (label === undefined) return null;
  const sums = { yes: 0, no: 0, untold: 0 };
  for (const at of rows) {
    const uses = cellOf(table, 'uses_matrix_unit', at);
    const kind = uses === 'yes' || uses === 'no' ? uses : 'untold';
    sums[kind] += Number(cellOf(table, 'total_ns', at) ?? 0);
  }
  return (
    <UseBar
      label={label}
      of="of kernel time"
      usedNs={sums.yes}
      untoldNs={sums.untold}
      wholeNs={sums.yes + sums.no + sums.untold}
    />
  );
}

/** Every kernel of the recording, in a table. */
export default function Page({ selection }: PageProps): ReactNode {
  const { run, worker, span } = selection;
  const { location } = useNavigation();
  const query = useTableData(span.trace, 'kernels', location.group);
  if (query.error) {
    return <Refused title="Kernels" error={query.error} retry={() => void query.refetch()} />;
  }
  return (
    <Loaded query={query} what="Kernels">
      {(table) => (
        <DataTable
          table={table}
          name="kernels"
          label="Kernels"
          recording={[run.name, worker.name, span.label]}
          isStale={query.isPlaceholderData}
          identity={table.group === 'stream' ? STREAM_IDENTITY : KERNEL_IDENTITY}
          above={(shown) => (
            <Shares shown={shown}>
              <MatrixUnits shown={shown} />
            </Shares>
          )}
          details={(at) => (
            <KernelRow trace={span.trace} table={table} at={at} device={deviceOf(table)} />
          )}
        />
      )}
    </Loaded>
  );
}
