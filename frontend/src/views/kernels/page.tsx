import type { ReactNode } from 'react';
import { useTableData } from '../../api/queries';
import { useNavigation } from '../../state/navigation';
import { Loaded } from '../../widgets/loaded';
import { DataTable } from '../../widgets/table';
import type { PageProps } from '../view';

/** Every kernel of the recording, in a table. */
export default function Page({ selection }: PageProps): ReactNode {
  const { run, worker, span } = selection;
  const { location } = useNavigation();
  const query = useTableData(span.trace, 'kernels', location.group);
  return (
    <Loaded query={query} what="Kernels">
      {(table) => (
        <DataTable
          table={table}
          name="kernels"
          label="Kernels"
          recording={[run.name, worker.name, span.label]}
          isStale={query.isPlaceholderData}
        />
      )}
    </Loaded>
  );
}
