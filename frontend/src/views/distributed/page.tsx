import type { ReactNode } from 'react';
import type { Distributed } from '../../api/types.gen';
import { count, duration, plural } from '../../core/format';
import { useNavigation } from '../../state/navigation';
import { Code } from '../../widgets/code';
import { Empty } from '../../widgets/empty';
import { Loaded } from '../../widgets/loaded';
import { Picker } from '../../widgets/picker';
import { Tabs } from '../../widgets/tabs';
import { ViewHeader } from '../../widgets/view_header';
import type { PageProps } from '../view';
import { AllToAll } from './all_to_all';
import { Bars } from './bars';
import { HeatCard } from './heat/heat_card';
import { SpreadCard } from './heat/spread_card';
import { type JobProps, useRanksQuery } from './queries';
import { Representatives } from './representatives';
import { Stragglers } from './stragglers';
import { Summary } from './summary';
import { CollectivesTable, ListTable } from './tables';
import '../../charts/charts.css';
import './distributed.css';

const RECORDING = `torch.profiler.profile(
    schedule=torch.profiler.schedule(wait=5, warmup=2, active=6),
    on_trace_ready=torch.profiler.tensorboard_trace_handler(
        "log/my_run", worker_name=f"rank{torch.distributed.get_rank()}"),
)`;

function singleRankReason({ world_size, ranks }: Distributed): string {
  const worker = ranks[0]?.worker ?? 'one worker';
  if (world_size !== null && world_size > 1) {
    return `This run contains a trace of ${worker} only, of a job of ${count(world_size)} ranks. Waiting between ranks shows only with the traces of the others.`;
  }
  return `This run contains a trace of one process, ${worker}. Waiting between ranks shows only with traces of several ranks.`;
}

/** Explains how to record all ranks, and which files form one run. */
function SingleRank({ summary }: { readonly summary: Distributed }): ReactNode {
  const { world_size, collective_count } = summary;
  return (
    <Empty icon="distributed" title="Only one rank was recorded">
      <p>{singleRankReason(summary)}</p>
      <p>
        {world_size === 1
          ? 'In a job of several ranks, record every rank, over the same steps and into one folder:'
          : 'Record every rank, over the same steps and into one folder:'}
      </p>
      <Code code={RECORDING} />
      <p>
        The files of one folder form one run. If the other ranks wrote to folders of their own, move
        the files together: the rank comes from the file’s header, else from its name, such as{' '}
        <code className="inline-code">rank3.pt.trace.json.gz</code>.
      </p>
      {collective_count > 0 && (
        <p>
          Below are {plural(collective_count, 'collective')} of this rank; without the other ranks
          their time cannot be split into transfer and waiting.
        </p>
      )}
    </Empty>
  );
}

const ALL = '';

function StepChoice({ summary }: { readonly summary: Distributed }): ReactNode {
  const { location, go } = useNavigation();
  if (summary.steps.length === 0) return null;
  const isRecorded = summary.steps.includes(location.step ?? -1);
  return (
    <Picker
      label="Step"
      value={isRecorded ? String(location.step) : ALL}
      choices={[
        { key: ALL, label: `all ${summary.steps.length}` },
        ...summary.steps.map((step) => ({ key: String(step), label: String(step) })),
      ]}
      onChoose={(step) => go({ step: step === ALL ? null : Number(step) }, 'replace')}
    />
  );
}

function note({
  ranks,
  world_size,
  host_count,
  group_count,
  steps,
  mean_step_ns,
}: Distributed): string {
  const all = world_size === null ? '' : ` of ${count(world_size)}`;
  return [
    `${count(ranks.length)}${all} ${ranks.length === 1 && world_size === null ? 'rank' : 'ranks'}`,
    host_count > 0 && plural(host_count, 'node'),
    group_count > 0 && plural(group_count, 'process group'),
    steps.length > 0 && `${plural(steps.length, 'step')} of ${duration(mean_step_ns)}`,
  ]
    .filter(Boolean)
    .join(', ');
}

type TabId = 'ranks' | 'collectives' | 'all-to-all' | 'groups' | 'devices';

function Parts({ selection, summary }: JobProps): ReactNode {
  const isSingle = summary.ranks.length < 2;
  const ranks = {
    id: 'ranks' as TabId,
    label: isSingle ? 'Rank' : 'Ranks',
    count: summary.ranks.length,
  };
  return (
    <Tabs
      label="Tables"
      tabs={[
        ranks,
        { id: 'collectives', label: 'Collectives', count: summary.collective_count },
        ...(summary.has_all_to_all ? [{ id: 'all-to-all' as TabId, label: 'All-to-all' }] : []),
        { id: 'groups', label: 'Process groups', count: summary.group_count },
        { id: 'devices', label: 'Devices' },
      ]}
    >
      {(tab) => {
        if (tab === 'ranks') return <Bars selection={selection} summary={summary} />;
        if (tab === 'all-to-all') return <AllToAll selection={selection} />;
        return (
          <div className="distributed-table framed">
            {tab === 'collectives' && <CollectivesTable selection={selection} summary={summary} />}
            {tab === 'groups' && (
              <ListTable selection={selection} path="groups" label="Process groups" />
            )}
            {tab === 'devices' && (
              <ListTable selection={selection} path="devices" label="Devices" />
            )}
          </div>
        );
      }}
    </Tabs>
  );
}

function View({ selection, summary }: JobProps): ReactNode {
  const { location } = useNavigation();
  const isSingle = summary.ranks.length < 2 && summary.waiting_count === 0;
  return (
    <div className="distributed stack">
      {isSingle ? (
        <SingleRank summary={summary} />
      ) : (
        <>
          <Summary selection={selection} summary={summary} />
          {location.time && (
            <p className="muted">
              A time range does not filter this view, as the clocks of ranks differ: select a step.
            </p>
          )}
          <div className="distributed-main">
            <HeatCard selection={selection} summary={summary} />
            <div className="stack">
              <Stragglers summary={summary} />
              <SpreadCard selection={selection} summary={summary} />
            </div>
          </div>
        </>
      )}
      <Representatives selection={selection} summary={summary} />
      <Parts selection={selection} summary={summary} />
    </div>
  );
}

/** Compares the ranks of a run. */
export default function Page({ selection }: PageProps): ReactNode {
  const query = useRanksQuery(selection, 'distributed');
  return (
    <div className="page">
      <ViewHeader title="Distributed" note={query.data && note(query.data)}>
        {query.data && <StepChoice summary={query.data} />}
      </ViewHeader>
      <Loaded query={query} what="The ranks of this run">
        {(summary) => <View selection={selection} summary={summary} />}
      </Loaded>
    </div>
  );
}
