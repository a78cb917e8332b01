import type { ReactNode } from 'react';
import { useTableData } from '../../api/queries';
import { useNavigation } from '../../state/navigation';
import { Loaded } from '../../widgets/loaded';
import { DataTable } from '../../widgets/table';
import type { PageProps } from '../view';

/** Every operator of the recording, in a table. */
export default function Page({ selection }: PageProps): ReactNode {
  const { run, worker, span } = selection;
  const { location } = useNavigation();
  const query = useTableData(span.trace, 'operators', location.group);
  return (
    <Loaded query={query} what="Operators">
      {(table) => (
        <DataTable
          table={table}
          name="operators"
          label="Operators"
          recording={[run.name, worker.name, span.label]}
          isStale={query.isPlaceholderData}
        />
      )}
    </Loaded>
  );
}
