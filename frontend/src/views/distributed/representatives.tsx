import type { ReactNode } from 'react';
import type { Representative } from '../../api/types.gen';
import { column } from '../../core/columns';
import type { ExportTable } from '../../core/export';
import { duration, quantityExact } from '../../core/format';
import { sentence } from '../../core/sentence';
import { useNavigation } from '../../state/navigation';
import { Card } from '../../widgets/card';
import { Goto } from '../../widgets/goto';
import { PlainTable } from '../../widgets/plain_table';
import { Prose } from '../../widgets/prose';
import { TableExport } from '../../widgets/table_export';
import type { JobProps } from './queries';
import { capital, rankName } from './ranks';

const exported = (ranks: readonly Representative[]): ExportTable => ({
  columns: [
    column('kind', 'Kind', 'text'),
    column('rank', 'Rank', 'text'),
    column('host', 'Node', 'text'),
    column('step', 'Step', 'ns'),
    column('reason', 'Reason', 'text'),
  ],
  rows: ranks.map((rank) => [rank.kind, rankName(rank), rank.host, rank.step_ns, rank.reason]),
});

/** The few ranks worth inspecting, with the reasons. */
export function Representatives({ selection, summary }: JobProps): ReactNode {
  const { location } = useNavigation();
  const { representatives } = summary;
  const { step } = location;
  if (representatives.length === 0) return null;
  return (
    <Card
      className="representatives"
      label="Ranks to inspect"
      title="Ranks to inspect"
      note="They represent the other ranks."
      actions={
        <TableExport
          note="The ranks with the reason for each."
          name={[selection.run.name, 'ranks to look at']}
          table={() => exported(representatives)}
        />
      }
    >
      <div className="scroll-x">
        <PlainTable
          rows={representatives}
          keyOf={({ kind, worker, figure }) => `${kind} ${worker} ${figure}`}
          rowProps={({ worker }) => ({
            'aria-current': location.worker === worker ? 'true' : undefined,
          })}
          columns={[
            {
              label: 'Kind',
              cell: ({ kind }) => <span className={`kind kind-${kind}`}>{capital(kind)}</span>,
            },
            {
              label: 'Rank',
              isHeader: true,
              cell: (rank) => (
                <Goto to={{ worker: rank.worker, step }} title="Select this rank">
                  {capital(rankName(rank))}
                </Goto>
              ),
            },
            {
              label: 'Node',
              className: 'muted representative-host',
              cell: ({ host }) => host ?? '–',
            },
            {
              label: 'Mean step',
              isNumber: true,
              title: ({ step_ns }) => quantityExact(step_ns, 'ns'),
              cell: ({ step_ns }) => duration(step_ns),
            },
            {
              label: 'Reason',
              className: 'representative-reason',
              cell: ({ reason }) => <Prose text={sentence(reason)} />,
            },
            {
              label: 'Open',
              className: 'representative-links',
              cell: ({ worker }) => (
                <>
                  <Goto to={{ view: 'timeline', worker, step }}>Timeline</Goto>
                  <Goto to={{ view: 'overview', worker, step }}>Overview</Goto>
                  <Goto to={{ view: 'advice', worker }}>Advice</Goto>
                </>
              ),
            },
          ]}
        />
      </div>
    </Card>
  );
}
