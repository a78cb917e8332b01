import type { ReactNode } from 'react';
import type { Table } from '../../api/types.gen';
import { count } from '../../core/format';
import { useNavigation } from '../../state/navigation';
import { useChangeOptions, useOption } from '../../state/option';
import type { Selection } from '../../state/selection';
import { Loaded } from '../../widgets/loaded';
import { Picker } from '../../widgets/picker';
import { type Segment, Segmented } from '../../widgets/segmented';
import { DataTable } from '../../widgets/table';
import { CollectivePanel } from './collective';
import { type JobProps, useRanksQuery } from './queries';
import { rankName } from './ranks';

type Grouping = 'kind' | 'each';
const GROUPINGS: readonly Segment<Grouping>[] = [
  { id: 'kind', label: 'By kind', title: 'Grouped by kind, group, type and size' },
  { id: 'each', label: 'Individually', title: 'One row per collective, longest waiting first' },
];

const spanNames = ({ run, span }: Selection): readonly string[] => [run.name, span.label];

/** Collectives of all ranks or of one, grouped or individually; a row opens its ranks on one clock. */
export function CollectivesTable({ selection, summary }: JobProps): ReactNode {
  const { location } = useNavigation();
  const change = useChangeOptions();
  const [by] = useOption<Grouping>('collectives', 'kind', ['kind', 'each']);
  const workers = summary.ranks.map(({ worker }) => worker);
  const [worker, setWorker] = useOption('of', '', ['', ...workers]);
  const step = summary.steps.includes(location.step ?? -1) ? location.step : null;
  const query = useRanksQuery(selection, 'distributed/collectives', {
    by,
    step,
    worker: worker === '' ? null : worker,
  });
  const tools = (
    <>
      <Segmented
        label="Rows"
        segments={GROUPINGS}
        value={by}
        onChoose={(next) => {
          change({ row: null, at: null, collectives: next === 'kind' ? null : next });
        }}
      />
      <Picker
        label="Of"
        value={worker}
        choices={[
          { key: '', label: 'all ranks' },
          ...summary.ranks.map((rank) => ({ key: rank.worker, label: rankName(rank) })),
        ]}
        onChoose={(next) => setWorker(next)}
      />
    </>
  );
  return (
    <Loaded query={query} what="Collectives">
      {({ table, opens }) => (
        <DataTable
          key={by}
          table={table}
          name={`distributed-${by}`}
          label={titleOf(table, step)}
          traceName={[...spanNames(selection), 'collectives']}
          isStale={query.isPlaceholderData}
          tools={tools}
          details={(at) => {
            const of = opens[at];
            return (
              of && (
                <CollectivePanel key={`${of.worker} ${of.event}`} selection={selection} of={of} />
              )
            );
          }}
        />
      )}
    </Loaded>
  );
}

function titleOf({ all_row_count, row_count }: Table, step: number | null): string {
  const title = step === null ? 'Collectives' : `Collectives of step ${step}`;
  return all_row_count === null || all_row_count === row_count
    ? title
    : `${title}: the ${count(row_count)} with the longest waiting`;
}

interface ListProps extends Pick<JobProps, 'selection'> {
  readonly path: 'groups' | 'devices';
  readonly label: string;
}

/** The process groups, or the devices. */
export function ListTable({ selection, path, label }: ListProps): ReactNode {
  const query = useRanksQuery(selection, `distributed/${path}`);
  return (
    <Loaded query={query} what={label}>
      {(table) => (
        <DataTable
          table={table}
          name={`distributed-${path}`}
          label={label}
          traceName={[...spanNames(selection), path]}
          isStale={query.isPlaceholderData}
        />
      )}
    </Loaded>
  );
}
