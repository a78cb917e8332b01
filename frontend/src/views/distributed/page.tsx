import type { ReactNode } from 'react';
import type { Distributed } from '../../api/types.gen';
import { count, duration, plural } from '../../core/format';
import { useNavigation } from '../../state/navigation';
import type { Selection } from '../../state/selection';
import { Loaded } from '../../widgets/loaded';
import { Picker } from '../../widgets/picker';
import { Tabs } from '../../widgets/tabs';
import { ViewHeader } from '../../widgets/view_header';
import type { PageProps } from '../view';
import { Alone } from './alone';
import { Bars } from './bars/bars_card';
import { HeatCard } from './heat/heat_card';
import { SpreadCard } from './heat/spread_card';
import { useRanksAnswer } from './queries';
import { Representatives } from './representatives';
import { Stragglers } from './stragglers';
import { Summary } from './summary';
import { CollectivesTable, DevicesTable, GroupsTable } from './tables';
import '../../charts/charts.css';
import './distributed.css';

interface Props {
  readonly selection: Selection;
  readonly summary: Distributed;
}

const ALL = '';

function StepChoice({ summary }: { readonly summary: Distributed }): ReactNode {
  const { location, go } = useNavigation();
  if (summary.steps.length === 0) return null;
  const isKnown = summary.steps.includes(location.step ?? -1);
  return (
    <Picker
      label="Step"
      value={isKnown ? String(location.step) : ALL}
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

type TabId = 'ranks' | 'collectives' | 'groups' | 'devices';

function Parts({ selection, summary }: Props): ReactNode {
  const isAlone = summary.ranks.length < 2;
  const ranks = {
    id: 'ranks' as TabId,
    label: isAlone ? 'Rank' : 'Ranks',
    count: summary.ranks.length,
  };
  return (
    <Tabs
      label="Parts of the view"
      tabs={[
        ranks,
        { id: 'collectives', label: 'Collectives', count: summary.collective_count },
        { id: 'groups', label: 'Process groups', count: summary.group_count },
        { id: 'devices', label: 'Devices' },
      ]}
    >
      {(tab) => {
        if (tab === 'ranks') return <Bars selection={selection} summary={summary} />;
        return (
          <div className="distributed-table">
            {tab === 'collectives' && <CollectivesTable selection={selection} summary={summary} />}
            {tab === 'groups' && <GroupsTable selection={selection} />}
            {tab === 'devices' && <DevicesTable selection={selection} />}
          </div>
        );
      }}
    </Tabs>
  );
}

function View({ selection, summary }: Props): ReactNode {
  const { location } = useNavigation();
  const isAlone = summary.ranks.length < 2 && summary.waiting_count === 0;
  return (
    <div className="distributed stack">
      {isAlone ? (
        <Alone summary={summary} />
      ) : (
        <>
          <Summary selection={selection} summary={summary} />
          {location.time && (
            <p className="muted">
              A chosen time does not narrow this view, as each rank has a clock of its own: choose a
              step.
            </p>
          )}
          <div className="distributed-main">
            <HeatCard selection={selection} summary={summary} />
            <div className="distributed-side">
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

/** The ranks of a run beside each other. */
export default function Page({ selection }: PageProps): ReactNode {
  const query = useRanksAnswer<Distributed>(selection, 'distributed');
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
