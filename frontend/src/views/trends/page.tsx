import type { UseQueryResult } from '@tanstack/react-query';
import { type ReactNode, useRef } from 'react';
import { usePolledQuery } from '../../api/polling';
import { useRunList } from '../../api/queries';
import type { RunState, Runs, Trends } from '../../api/types.gen';
import { fileName } from '../../core/export';
import { plural } from '../../core/format';
import { spansOf } from '../../core/progress';
import { useNavigation } from '../../state/navigation';
import { useChangeOptions } from '../../state/option';
import { Loaded, Skeleton } from '../../widgets/loaded';
import { Picker } from '../../widgets/picker';
import { type Segment, Segmented, useSegments } from '../../widgets/segmented';
import { TableExport } from '../../widgets/table_export';
import { ViewHeader } from '../../widgets/view_header';
import type { PageProps } from '../view';
import { tableOf, verdictOf } from './panels';
import { type Axis, defaultScope, hasTimes, type Scope, scopeSizes } from './points';
import { TrendsReport } from './report';
import '../../charts/charts.css';
import './trends.css';

const ALL = '*';
const SCOPES: readonly Scope[] = ['spans', 'folder', 'all'];

interface TrendScope {
  readonly run: RunState;
  readonly scope: Scope;
  /** Null: the mean over all workers. */
  readonly worker: string | null;
}

function useTrends(runs: Runs, { run, scope, worker }: TrendScope): UseQueryResult<Trends> {
  return usePolledQuery(
    'trends',
    { run: run.id, scope, worker },
    {
      spans: runs.runs.flatMap(spansOf),
      waitingCount: ({ waiting_count }) => waiting_count,
    },
  );
}

interface ControlsProps {
  readonly runs: Runs;
  readonly followed: TrendScope;
  /** Whether the axis can be the time of recording. */
  readonly hasTimeAxis: boolean;
}

const AXES: readonly Segment<Axis>[] = [
  { id: 'order', label: 'In order' },
  { id: 'time', label: 'By time' },
];

function Controls({ runs, followed, hasTimeAxis }: ControlsProps): ReactNode {
  const change = useChangeOptions();
  const { run, scope, worker } = followed;
  const sizes = scopeSizes(runs, run);
  const [, axes] = useSegments<Axis>('x', { label: 'Axis', segments: AXES });
  const scopes: Segment<Scope>[] = [
    { id: 'spans', label: `Spans ${sizes.spans}`, title: 'The spans of this run' },
    { id: 'folder', label: `Folder ${sizes.folder}`, title: 'The runs in the folder of this run' },
    { id: 'all', label: `All runs ${sizes.all}`, title: 'All runs, at most 500 traces' },
  ];
  const workers = [
    { key: ALL, label: 'Mean of all' },
    ...run.workers.map(({ name, rank }) => ({
      key: name,
      label: name,
      note: rank === null ? undefined : `rank ${rank}`,
    })),
  ];
  return (
    <>
      {scope === 'spans' && run.workers.length > 1 && (
        <Picker
          label="Worker"
          choices={workers}
          value={worker ?? ALL}
          onChoose={(key) => change({ worker: key === ALL ? null : key })}
        />
      )}
      <Segmented
        label="Scope"
        isLabelled
        segments={scopes}
        value={scope}
        onChoose={(value) => change({ scope: value })}
      />
      {hasTimeAxis && axes}
    </>
  );
}

/** The scope in the URL, else the narrowest one with several traces. */
function useScope(runs: Runs, run: RunState): TrendScope {
  const { options } = useNavigation().location;
  const scope =
    SCOPES.find((scope) => scope === options.scope) ?? defaultScope(scopeSizes(runs, run));
  const worker = run.workers.find(({ name }) => name === options.worker)?.name ?? null;
  return { run, scope, worker: scope === 'spans' ? worker : null };
}

export function TrendsPage({ selection, runs }: PageProps & { readonly runs: Runs }): ReactNode {
  const { options } = useNavigation().location;
  const followed = useScope(runs, selection.run);
  const query = useTrends(runs, followed);
  const charts = useRef<HTMLDivElement>(null);
  const { data } = query;
  const points = data?.points ?? [];
  const hasTimeAxis = hasTimes(points, runs);
  const axis: Axis = hasTimeAxis && options.x === 'time' ? 'time' : 'order';
  return (
    <div className="page trends">
      <ViewHeader
        title="Trends"
        note={points.length > 0 ? plural(points.length, 'trace') : undefined}
      >
        <Controls runs={runs} followed={followed} hasTimeAxis={hasTimeAxis} />
        {data && points.length > 1 && (
          <TableExport
            note="All values of all traces, in full precision."
            name={['trends', followed.run.name, followed.scope]}
            table={() => tableOf(data, followed.scope)}
            about={{ scope: followed.scope, run: followed.run.name, worker: followed.worker }}
            picture={{
              element: charts,
              title: `Trends of ${followed.run.name}`,
              subtitle: verdictOf(points, followed.scope),
              file: fileName(['trends', followed.run.name, followed.scope], 'png'),
            }}
          />
        )}
      </ViewHeader>
      <Loaded query={query} what="The trends">
        {(trends) => (
          <TrendsReport
            runs={runs}
            trends={trends}
            scope={followed.scope}
            axis={axis}
            selection={selection}
            charts={charts}
          />
        )}
      </Loaded>
    </div>
  );
}

export default function Page({ selection }: PageProps): ReactNode {
  const runs = useRunList();
  return runs ? <TrendsPage selection={selection} runs={runs} /> : <Skeleton />;
}
