import type { ReactNode } from 'react';
import type { ExchangeGroup } from '../../api/types.gen';
import { bytes, plural, quantityExact } from '../../core/format';
import { useOption } from '../../state/option';
import type { Selection } from '../../state/selection';
import { Card } from '../../widgets/card';
import { Loaded } from '../../widgets/loaded';
import { Picker } from '../../widgets/picker';
import { useRanksQuery } from './queries';
import './all_to_all.css';

/** Larger groups show the bytes of a cell in its tooltip only. */
const MOST_LABELLED = 12;
/** The tint of the largest cell, on which text stays readable. */
const DARKEST = 56;

/** The rank that receives the most, compared with the mean; else why that is unknown. */
export function imbalanceSentence({
  ranks,
  received_bytes,
  imbalance,
  reason,
}: ExchangeGroup): string {
  if (imbalance === null || received_bytes.length === 0) {
    return `Imbalance unknown: ${reason}`;
  }
  const most = Math.max(...received_bytes);
  const mean = received_bytes.reduce((sum, part) => sum + part, 0) / received_bytes.length;
  if (imbalance < 1.005) return `Balanced: each rank receives ${bytes(mean)}.`;
  const rank = ranks[received_bytes.indexOf(most)];
  return `Rank ${rank} receives the most, ${bytes(most)}: ${imbalance.toFixed(2)} × the mean of ${bytes(mean)}.`;
}

const largestOf = ({ sent_bytes }: ExchangeGroup): number =>
  Math.max(1, ...sent_bytes.flat().map((part) => part ?? 0));

interface CellProps {
  readonly value: number | null;
  readonly largest: number;
  readonly title: string;
  readonly isLabelled: boolean;
}

function Cell({ value, largest, title, isLabelled }: CellProps): ReactNode {
  const tint = ((value ?? 0) / largest) * DARKEST;
  const words = `${title}: ${quantityExact(value, 'bytes')}`;
  return (
    <td
      title={words}
      className={value === null ? 'exchange-none' : undefined}
      style={{
        background:
          value === null ? undefined : `color-mix(in srgb, var(--accent) ${tint}%, transparent)`,
      }}
    >
      {isLabelled ? (
        value === null ? (
          '–'
        ) : (
          bytes(value)
        )
      ) : (
        <span className="visually-hidden">{words}</span>
      )}
    </td>
  );
}

/** Bytes from each sender (rows) to each receiver (columns). */
export function ExchangeMap({ group }: { readonly group: ExchangeGroup }): ReactNode {
  const { ranks, sent_bytes, received_bytes } = group;
  const largest = largestOf(group);
  const isLabelled = ranks.length <= MOST_LABELLED;
  if (sent_bytes.length === 0) {
    return (
      <p className="muted">The group is too large for a map: see the table all-to-all-traffic.</p>
    );
  }
  return (
    <div className="scroll-x">
      <table className={isLabelled ? 'exchange-map' : 'exchange-map exchange-small'}>
        <caption className="note">Bytes from sender (row) to receiver (column)</caption>
        <thead>
          <tr>
            <th scope="col">Rank</th>
            {ranks.map((rank) => (
              <th key={rank} scope="col">
                {rank}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {sent_bytes.map((sent, row) => (
            <tr key={ranks[row]}>
              <th scope="row">{ranks[row]}</th>
              {sent.map((value, column) => (
                <Cell
                  key={ranks[column]}
                  value={value}
                  largest={largest}
                  title={`Rank ${ranks[row]} to ${row === column ? 'itself' : `rank ${ranks[column]}`}`}
                  isLabelled={isLabelled}
                />
              ))}
            </tr>
          ))}
        </tbody>
        {received_bytes.length > 0 && isLabelled && (
          <tfoot>
            <tr>
              <th scope="row">received</th>
              {received_bytes.map((part, at) => (
                <td key={ranks[at]} title={quantityExact(part, 'bytes')}>
                  {bytes(part)}
                </td>
              ))}
            </tr>
          </tfoot>
        )}
      </table>
    </div>
  );
}

const keyOf = ({ group, ranks }: ExchangeGroup): string => `${group} ${ranks.join()}`;

const nameOf = ({ group, description, ranks }: ExchangeGroup): string => {
  const name = description !== '' && description !== 'undefined' ? description : `group ${group}`;
  return `${name}: ranks ${ranks.slice(0, 8).join(', ')}${ranks.length > 8 ? ', …' : ''}`;
};

/** All-to-all exchanges of a process group: how evenly its ranks receive, and who sends to whom. */
export function AllToAll({ selection }: { readonly selection: Selection }): ReactNode {
  const query = useRanksQuery(selection, 'distributed/all-to-all');
  const [chosen, choose] = useOption('exchange', '', (query.data?.groups ?? []).map(keyOf));
  return (
    <Loaded query={query} what="All-to-all exchanges">
      {({ groups }) => {
        const group = groups.find((one) => keyOf(one) === chosen) ?? groups[0];
        if (!group)
          return <p className="muted">The traces do not state the ranks of the exchanges.</p>;
        return (
          <Card
            title="All-to-all"
            note={`${plural(group.ranks.length, 'rank')}, ${plural(group.call_count, 'exchange')} each`}
            actions={
              groups.length > 1 && (
                <Picker
                  label="Group"
                  value={keyOf(group)}
                  choices={groups.map((one) => ({ key: keyOf(one), label: nameOf(one) }))}
                  onChoose={(key) => choose(key)}
                />
              )
            }
          >
            <p>{imbalanceSentence(group)}</p>
            <ExchangeMap group={group} />
          </Card>
        );
      }}
    </Loaded>
  );
}
