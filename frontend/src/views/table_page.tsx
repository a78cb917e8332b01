import type { ReactNode } from 'react';
import type { TableName } from '../api/client';
import { useTableData } from '../api/queries';
import type { Table } from '../api/types.gen';
import { type Patch, useNavigation } from '../state/navigation';
import type { Selection } from '../state/selection';
import { Loaded } from '../widgets/loaded';
import { DataTable, type ShownTable } from '../widgets/table';
import { Refused } from '../widgets/table/refused';
import { Shares } from '../widgets/table/shares';

/** A row whose details are shown. */
export interface DetailsProps {
  readonly trace: string;
  readonly table: Table;
  readonly at: number;
  readonly device: string;
}

interface Props {
  readonly selection: Selection;
  readonly name: TableName;
  readonly label: string;
  /** The columns that identify a row. */
  readonly identity: (table: Table) => readonly string[];
  /** Further bars above the table. */
  readonly above: (shown: ShownTable) => ReactNode;
  /** A further row between these and the table. */
  readonly bar?: ReactNode;
  readonly details: (table: Table, at: number) => ReactNode;
  /** Where a click on a row leads instead of its details. */
  readonly follow?: (table: Table, at: number) => Patch | null;
}

/** A view with one table of a trace: operators or kernels. */
export function TablePage(props: Props): ReactNode {
  const { selection, name, label, identity, above, details, follow, bar } = props;
  const { run, worker, span } = selection;
  const { location } = useNavigation();
  const query = useTableData(span.trace, name, location.group);
  if (query.error) {
    return <Refused title={label} error={query.error} retry={() => void query.refetch()} />;
  }
  return (
    <Loaded query={query} what={label}>
      {(table) => (
        <DataTable
          table={table}
          name={name}
          label={label}
          traceName={[run.name, worker.name, span.label]}
          isStale={query.isPlaceholderData}
          identity={identity(table)}
          above={(shown) => (
            <>
              <Shares shown={shown}>{above(shown)}</Shares>
              {bar}
            </>
          )}
          details={(at) => details(table, at)}
          follow={(at) => follow?.(table, at) ?? null}
        />
      )}
    </Loaded>
  );
}
