import type { ReactNode } from 'react';
import type { Table } from '../../api/types.gen';
import type { Patch } from '../../state/navigation';
import { OPERATOR_IDENTITY } from '../../widgets/details/locations';
import { Goto } from '../../widgets/goto';
import type { ShownTable } from '../../widgets/table';
import { cellOf } from '../../widgets/table/rows';
import { UseBar } from '../../widgets/table/shares';
import { TablePage } from '../table_page';
import type { PageProps } from '../view';
import { OperatorRow } from './details';

/** The name of the device in the columns: `GPU`. */
export const deviceOf = (table: Table): string =>
  table.columns.find(({ key }) => key === 'device_self_ns')?.group || 'device';

function columnLabel(table: Table, key: string): string | undefined {
  return table.columns.find((column) => column.key === key)?.label;
}

/** Device time in kernels that use matrix units, over the shown rows. */
function MatrixUnits({ shown }: { readonly shown: ShownTable }): ReactNode {
  const { table, rows } = shown;
  const label = columnLabel(table, 'matrix_unit_self_share')?.replace(/^.* on /, '');
  if (label === undefined) return null;
  let [used, unknown, whole] = [0, 0, 0];
  for (const at of rows) {
    const ns = Number(cellOf(table, 'device_self_ns', at) ?? 0);
    const part = cellOf(table, 'matrix_unit_self_share', at);
    whole += ns;
    if (typeof part === 'number') used += ns * part;
    else unknown += ns;
  }
  return (
    <UseBar
      label={label}
      of={`of ${deviceOf(table)} time`}
      usedNs={used}
      untoldNs={unknown}
      wholeNs={whole}
    />
  );
}

/** The operators of a category; null for work that no operator launched. */
function operatorsOf(table: Table, at: number): Patch | null {
  if (table.group !== 'category' || cellOf(table, 'operator_count', at) === 0) return null;
  return { group: 'name', search: `category:"${cellOf(table, 'name', at)}"`, options: {} };
}

export default function Page({ selection }: PageProps): ReactNode {
  const { trace } = selection.span;
  return (
    <TablePage
      selection={selection}
      name="operators"
      label="Operators"
      identity={() => OPERATOR_IDENTITY}
      above={(shown) => <MatrixUnits shown={shown} />}
      follow={operatorsOf}
      details={(table, at) =>
        table.group === 'category' ? (
          <p className="note">
            The trace has no operator that launched this work.{' '}
            <Goto to={{ view: 'kernels' }}>Kernels</Goto> and the Timeline show it.
          </p>
        ) : (
          <OperatorRow trace={trace} table={table} at={at} device={deviceOf(table)} />
        )
      }
    />
  );
}
