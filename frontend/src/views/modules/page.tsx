import type { ReactNode } from 'react';
import { useNarrowing, useTraceQuery } from '../../api/queries';
import { Empty } from '../../widgets/empty';
import { Loaded } from '../../widgets/loaded';
import { useSegments } from '../../widgets/segmented';
import { DataTable } from '../../widgets/table';
import { cellOf } from '../../widgets/table/rows';
import { ViewHeader } from '../../widgets/view_header';
import type { PageProps } from '../view';
import { Instances } from './instances';
import type { ModulesProps } from './props';
import { Work } from './work';
import '../../widgets/table/table.css';
import './modules.css';

const GROUPINGS = [
  { id: 'instance', label: 'By instance', title: 'A tree of all modules' },
  { id: 'class', label: 'By class', title: 'All instances of a class in one row' },
] as const;

function Classes({ table, selection, narrowing, isStale, grouping }: ModulesProps): ReactNode {
  const { run, worker, span } = selection;
  return (
    <DataTable
      table={table}
      name="modules-by-class"
      label="Modules"
      traceName={[run.name, worker.name, span.label]}
      isStale={isStale}
      identity={['class_name']}
      tools={grouping}
      details={(at) => (
        <Work
          trace={span.trace}
          narrowing={narrowing}
          className={String(cellOf(table, 'class_name', at))}
        />
      )}
    />
  );
}

function ModulesPage({ selection }: PageProps): ReactNode {
  const { trace } = selection.span;
  const narrowing = useNarrowing(trace);
  const [by, grouping] = useSegments('by', { label: 'Rows', segments: GROUPINGS });
  const { start_ns, end_ns } = narrowing ?? {};
  const query = useTraceQuery(
    trace,
    'modules',
    { by, start_ns, end_ns },
    { enabled: narrowing !== undefined },
  );
  const isFailed = query.error !== null && !query.data;
  const loaded = (
    <Loaded query={query} what="Modules">
      {(table) => {
        if (table.row_count === 0) {
          return (
            <div className="page">
              <ViewHeader title="Modules">{grouping}</ViewHeader>
              <Empty icon="info" title="No modules">
                <p>{table.empty}</p>
              </Empty>
            </div>
          );
        }
        const Part = table.by === 'class' ? Classes : Instances;
        return (
          <Part
            table={table}
            selection={selection}
            narrowing={narrowing ?? null}
            isStale={query.isPlaceholderData}
            grouping={grouping}
          />
        );
      }}
    </Loaded>
  );
  if (!isFailed) return loaded;
  return (
    <div className="page">
      <ViewHeader title="Modules" />
      {loaded}
    </div>
  );
}

export default function Page(props: PageProps): ReactNode {
  return <ModulesPage {...props} key={props.selection.span.trace} />;
}
