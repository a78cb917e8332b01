import type { ReactNode } from 'react';
import { useTableData } from '../../api/queries';
import type { Table } from '../../api/types.gen';
import { useNavigation } from '../../state/navigation';
import { OPERATOR_IDENTITY } from '../../widgets/details/places';
import { Loaded } from '../../widgets/loaded';
import { DataTable, type ShownTable } from '../../widgets/table';
import { Refused } from '../../widgets/table/refused';
import { cellOf } from '../../widgets/table/rows';
import { Shares, UseBar } from '../../widgets/table/shares';
import type { PageProps } from '../view';
import { OperatorRow } from './details';

/** What the columns call the device: `GPU self` → `GPU`. */
export function deviceOf(table: Table): string {
  const column = table.columns.find((each) => each.key === 'device_self_ns');
  return column?.label.replace(/ self$/, '') ?? 'device';
}

function columnLabel(table: Table, key: string): string | undefined {
  return table.columns.find((column) => column.key === key)?.label;
}

/** Device time in kernels that use matrix units, over the rows shown. */
function MatrixUnits({ shown }: { readonly shown: ShownTable }): ReactNode {
  const { table, rows } = shown;
  const label = columnLabel(table, 'matrix_unit_self_share')?.replace(/ self$/, '');
  if (label === undefined) return null;
  let [used, untold, whole] = [0, 0, 0];
  for (const at of rows) {
    const ns = Number(cellOf(table, 'device_self_ns', at) ?? 0);
    const part = cellOf(table, 'matrix_unit_self_share', at);
    whole += ns;
    if (typeof part === 'number') used += ns * part;
    else untold += ns;
  }
  return (
    <UseBar
      label={`${label}s`}
      of={`of ${deviceOf(table)} time`}
      usedNs={used}
      untoldNs={untold}
      wholeNs={whole}
    />
  );
}

/** Every operator of the recording, in a table. */
export default function Page({ selection }: PageProps): ReactNode {
  const { run, worker, span } = selection;
  const { location } = useNavigation();
  const query = useTableData(span.trace, 'operators', location.group);
  if (query.error) {
    return <Refused title="Operators" error={query.error} retry={() => void query.refetch()} />;
  }
  return (
    <Loaded query={query} what="Operators">
      {(table) => (
        <DataTable
          table={table}
          name="operators"
          label="Operators"
          recording={[run.name, worker.name, span.label]}
          isStale={query.isPlaceholderData}
          identity={OPERATOR_IDENTITY}
          above={(shown) => (
            <Shares shown={shown}>
              <MatrixUnits shown={shown} />
            </Shares>
          )}
          details={(at) => (
            <OperatorRow trace={span.trace} table={table} at={at} device={deviceOf(table)} />
          )}
        />
      )}
    </Loaded>
  );
}
