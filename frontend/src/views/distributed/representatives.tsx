import type { ReactNode } from 'react';
import type { Distributed, Representative } from '../../api/types.gen';
import { duration, quantityExact } from '../../core/format';
import { sentence } from '../../core/sentence';
import { useNavigation } from '../../state/navigation';
import type { Selection } from '../../state/selection';
import { ExportMenu } from '../../widgets/export_menu';
import { Goto } from '../../widgets/goto';
import { Prose } from '../../widgets/prose';
import { saveTable } from '../../widgets/save_table';
import { capital, rankName } from './names';

function Row({ of }: { readonly of: Representative }): ReactNode {
  const { location } = useNavigation();
  const { worker, host, kind, step_ns, reason } = of;
  const { step } = location;
  return (
    <tr aria-current={location.worker === worker ? 'true' : undefined}>
      <td>
        <span className={`kind kind-${kind}`}>{capital(kind)}</span>
      </td>
      <th scope="row">
        <Goto to={{ worker, step }} title="Choose this rank">
          {capital(rankName(of))}
        </Goto>
      </th>
      <td className="muted representative-host">{host ?? '–'}</td>
      <td className="number" title={quantityExact(step_ns, 'ns')}>
        {duration(step_ns)}
      </td>
      <td className="representative-reason">
        <Prose text={sentence(reason)} />
      </td>
      <td className="representative-links">
        <Goto to={{ view: 'timeline', worker, step }}>Timeline</Goto>
        <Goto to={{ view: 'overview', worker, step }}>Overview</Goto>
        <Goto to={{ view: 'advice', worker }}>Advice</Goto>
      </td>
    </tr>
  );
}

function exported(rows: readonly Representative[]) {
  const text = (key: string, label: string) => ({
    key,
    label,
    unit: 'text' as const,
    help: '',
    hidden: false,
  });
  return {
    columns: [
      text('kind', 'Kind'),
      text('rank', 'Rank'),
      text('host', 'Node'),
      { ...text('step', 'Step'), unit: 'ns' as const },
      text('reason', 'Reason'),
    ],
    rows: rows.map((of) => [of.kind, rankName(of), of.host, of.step_ns, of.reason]),
  };
}

interface Props {
  readonly selection: Selection;
  readonly summary: Distributed;
}

/** Of many ranks the few to look at, and why these. */
export function Representatives({ selection, summary }: Props): ReactNode {
  const { representatives } = summary;
  if (representatives.length === 0) return null;
  return (
    <section className="card representatives" aria-label="Ranks to look at">
      <div className="card-head">
        <h2>Ranks to look at</h2>
        <p>They stand for the others: nobody looks at every one.</p>
        <ExportMenu
          note="The ranks with the reason for each."
          onExport={(format) => {
            saveTable({
              name: [selection.run.name, 'ranks to look at'],
              format,
              table: exported(representatives),
              about: {},
            });
          }}
        />
      </div>
      <div className="scroll-x">
        <table className="plain">
          <thead>
            <tr>
              <th scope="col">Which</th>
              <th scope="col">Rank</th>
              <th scope="col">Node</th>
              <th scope="col" className="number">
                Mean step
              </th>
              <th scope="col">Why</th>
              <th scope="col">Open</th>
            </tr>
          </thead>
          <tbody>
            {representatives.map((of) => (
              <Row key={`${of.kind} ${of.worker} ${of.figure}`} of={of} />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
