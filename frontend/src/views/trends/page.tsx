import { keepPreviousData, type UseQueryResult, useQuery } from '@tanstack/react-query';
import { type ReactNode, useRef } from 'react';
import { api } from '../../api/client';
import { fileSet } from '../../api/file_set';
import { useKnownRuns } from '../../api/known_runs';
import type { RunState, Runs, Trends } from '../../api/types.gen';
import { fileName } from '../../core/export';
import { plural } from '../../core/format';
import { spansOf } from '../../core/progress';
import { useNavigation } from '../../state/navigation';
import { useOption, withOption } from '../../state/option';
import { ExportMenu } from '../../widgets/export_menu';
import { Loaded, Skeleton } from '../../widgets/loaded';
import { Picker } from '../../widgets/picker';
import { saveTable } from '../../widgets/save_table';
import { type Segment, Segmented } from '../../widgets/segmented';
import { ViewHeader } from '../../widgets/view_header';
import type { PageProps } from '../view';
import { tableOf, verdictOf } from './panels';
import { type Axis, hasTimes, type Scope, scopeSizes, usualScope } from './points';
import { TrendsReport } from './report';
import '../../charts/charts.css';
import './trends.css';

const UNTIL_ALL_ARE_READ_MS = 2000;
const ALL = '*';
const SCOPES: readonly Scope[] = ['spans', 'folder', 'all'];

interface Asked {
  readonly run: RunState;
  readonly scope: Scope;
  /** Null: the mean over all workers. */
  readonly worker: string | null;
}

function useTrends(runs: Runs, { run, scope, worker }: Asked): UseQueryResult<Trends> {
  const parameters = { run: run.id, scope, worker };
  return useQuery({
    queryKey: ['trends', parameters, fileSet(runs.runs.flatMap(spansOf))],
    queryFn: ({ signal }) => api.get<Trends>('trends', parameters, signal),
    placeholderData: (previous, query) =>
      JSON.stringify(query?.queryKey[1]) === JSON.stringify(parameters)
        ? keepPreviousData(previous)
        : undefined,
    refetchInterval: ({ state }) =>
      (state.data?.waiting_count ?? 0) > 0 ? UNTIL_ALL_ARE_READ_MS : false,
  });
}

interface ControlsProps {
  readonly runs: Runs;
  readonly asked: Asked;
  /** Whether the points can stand by when they were recorded. */
  readonly canBeTimed: boolean;
}

function Controls({ runs, asked, canBeTimed }: ControlsProps): ReactNode {
  const { location, go } = useNavigation();
  const { run, scope, worker } = asked;
  const sizes = scopeSizes(runs, run);
  const [axis, chooseAxis] = useOption<Axis>('x', 'order', ['order', 'time']);
  const put = (name: string, value: string | null): void =>
    go({ options: withOption(location.options, name, value) }, 'replace');
  const scopes: Segment<Scope>[] = [
    { id: 'spans', label: `Spans ${sizes.spans}`, title: 'The spans of this run' },
    { id: 'folder', label: `Folder ${sizes.folder}`, title: 'The runs in this run’s folder' },
    { id: 'all', label: `All runs ${sizes.all}`, title: 'Every run, at most 500 recordings' },
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
          onChoose={(key) => put('worker', key === ALL ? null : key)}
        />
      )}
      <Segmented
        label="Over"
        isLabelled
        segments={scopes}
        value={scope}
        onChoose={(value) => put('scope', value)}
      />
      {canBeTimed && (
        <Segmented
          label="Axis"
          segments={[
            { id: 'order', label: 'In order' },
            { id: 'time', label: 'By time' },
          ]}
          value={axis}
          onChoose={chooseAxis}
        />
      )}
    </>
  );
}

function save(trends: Trends, { run, scope, worker }: Asked, format: 'csv' | 'json'): void {
  saveTable({
    name: ['trends', run.name, scope],
    format,
    table: tableOf(trends, scope),
    about: { scope, run: run.name, worker },
  });
}

/** What the URL asks to be followed, else the narrowest scope in which there is something. */
function useAsked(runs: Runs, run: RunState): Asked {
  const { options } = useNavigation().location;
  const scope = SCOPES.find((each) => each === options.scope) ?? usualScope(scopeSizes(runs, run));
  const worker = run.workers.find(({ name }) => name === options.worker)?.name ?? null;
  return { run, scope, worker: scope === 'spans' ? worker : null };
}

export function TrendsPage({ selection, runs }: PageProps & { readonly runs: Runs }): ReactNode {
  const { options } = useNavigation().location;
  const asked = useAsked(runs, selection.run);
  const query = useTrends(runs, asked);
  const charts = useRef<HTMLDivElement>(null);
  const { data } = query;
  const points = data?.points ?? [];
  const canBeTimed = hasTimes(points, runs);
  const axis: Axis = canBeTimed && options.x === 'time' ? 'time' : 'order';
  return (
    <div className="page trends">
      <ViewHeader
        title="Trends"
        note={points.length > 0 ? plural(points.length, 'recording') : undefined}
      >
        <Controls runs={runs} asked={asked} canBeTimed={canBeTimed} />
        {data && points.length > 1 && (
          <ExportMenu
            note="Every figure of every recording, in full precision."
            onExport={(format) => save(data, asked, format)}
            picture={{
              element: charts,
              title: `Trends of ${asked.run.name}`,
              subtitle: verdictOf(points, asked.scope),
              file: fileName(['trends', asked.run.name, asked.scope], 'png'),
            }}
          />
        )}
      </ViewHeader>
      <Loaded query={query} what="The trends">
        {(trends) => (
          <TrendsReport
            runs={runs}
            trends={trends}
            scope={asked.scope}
            axis={axis}
            selection={selection}
            charts={charts}
          />
        )}
      </Loaded>
    </div>
  );
}

/** How step time, its parts and what advice could save went over spans, or over runs. */
export default function Page({ selection }: PageProps): ReactNode {
  const runs = useKnownRuns();
  return runs ? <TrendsPage selection={selection} runs={runs} /> : <Skeleton />;
}
