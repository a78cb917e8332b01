import type { ReactNode } from 'react';
import { useTraceQuery } from '../../api/queries';
import { Goto } from '../../widgets/goto';
import { Icon } from '../../widgets/icon';
import { Loaded } from '../../widgets/loaded';
import { DataTable } from '../../widgets/table';
import { wholeName } from '../../widgets/table/rows';
import { type MemoryScope, traceNames } from './scope';

/** Memory allocated and freed by each operator, as in torch-tb-profiler's Memory Statistics. */
export function ByOperator({ scope }: { readonly scope: MemoryScope }): ReactNode {
  const { device, narrowing, selection } = scope;
  const { start_ns, end_ns } = narrowing ?? {};
  const query = useTraceQuery(selection.span.trace, 'memory/operators', {
    device,
    start_ns,
    end_ns,
  });
  return (
    <div className="memory-part column grow">
      <Loaded query={query} what="Memory by operator">
        {(table) => (
          <DataTable
            table={table}
            name="memory-operators"
            label="By operator"
            traceName={traceNames(scope)}
            isStale={query.isPlaceholderData}
            identity={['operator']}
            details={(at) => (
              <p className="memory-links">
                <Goto to={{ view: 'operators', search: wholeName(table, at) }}>
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
