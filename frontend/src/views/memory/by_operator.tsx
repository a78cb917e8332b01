import type { ReactNode } from 'react';
import { useTraceAnswer } from '../../api/queries';
import type { Table } from '../../api/types.gen';
import { Goto } from '../../widgets/goto';
import { Icon } from '../../widgets/icon';
import { Loaded } from '../../widgets/loaded';
import { DataTable } from '../../widgets/table';
import { wholeName } from '../../widgets/table/rows';
import type { Asked } from './memory';

/** What each operator allocated and freed: torch-tb-profiler's Memory Statistics. */
export function ByOperator({ asked }: { readonly asked: Asked }): ReactNode {
  const { device, narrowing, selection } = asked;
  const { run, worker, span } = selection;
  const { start_ns, end_ns } = narrowing ?? {};
  const query = useTraceAnswer<Table>(span.trace, 'memory/operators', { device, start_ns, end_ns });
  return (
    <div className="memory-part">
      <Loaded query={query} what="Memory by operator">
        {(table) => (
          <DataTable
            table={table}
            name="memory-operators"
            label="By operator"
            recording={[run.name, worker.name, span.label, device]}
            isStale={query.isPlaceholderData}
            identity={['operator']}
            details={(at) => (
              <p className="memory-links">
                <Goto
                  to={{
                    view: 'operators',
                    search: wholeName(table, at),
                    group: null,
                    sort: null,
                    options: {},
                  }}
                >
                  Its time <Icon name="arrow" size={13} />
                </Goto>
              </p>
            )}
          />
        )}
      </Loaded>
    </div>
  );
}
