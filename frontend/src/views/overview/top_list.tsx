import type { ReactNode } from 'react';
import type { TopRow } from '../../api/types.gen';
import { quantity, quantityExact, share } from '../../core/format';
import { shortName } from '../../core/names';
import type { Patch } from '../../state/navigation';
import { timelineLocation } from '../../state/timeline_location';
import { Card } from '../../widgets/card';
import { kernelLocation, operatorLocation } from '../../widgets/details/locations';
import { Goto } from '../../widgets/goto';
import { Icon } from '../../widgets/icon';

interface Props {
  readonly title: string;
  /** The view with all rows. */
  readonly view: string | null;
  readonly rows: readonly TopRow[];
  /** The quantity, and the whole of the percentages. */
  readonly note: string;
}

/** The link of a row: its details in another view, or its time. */
function targetOf(row: TopRow): Patch {
  if (typeof row.start_ns === 'number' && typeof row.end_ns === 'number') {
    return timelineLocation(row.start_ns, row.end_ns, row.event);
  }
  if (row.view === 'operators' && row.kind) return operatorLocation(row.name, row.kind);
  if (row.view === 'kernels' && row.full_name) return kernelLocation(row.full_name);
  return { view: row.view, search: row.search };
}

function Row({ row, isName }: { readonly row: TopRow; readonly isName: boolean }): ReactNode {
  return (
    <li>
      <Goto to={targetOf(row)} className="top-row option" title={row.full_name || row.name}>
        <span className={isName ? 'top-name ellipsis mono' : 'top-name ellipsis'}>
          {shortName(row.name)}
        </span>
        <span className="note">{row.detail}</span>
        <span className="top-value number strong" title={quantityExact(row.value, row.unit)}>
          {quantity(row.value, row.unit)}
          {row.share !== null && <small>{share(row.share)}</small>}
        </span>
      </Goto>
    </li>
  );
}

/** The largest rows with links. */
export function TopList({ title, view, rows, note }: Props): ReactNode {
  return (
    <Card
      className="top"
      title={title}
      note={note}
      actions={
        view &&
        rows.length > 0 && (
          <Goto to={{ view }} className="all">
            All <Icon name="arrow" size={13} />
          </Goto>
        )
      }
    >
      {rows.length === 0 ? (
        <p className="muted">None in this trace.</p>
      ) : (
        <ol>
          {rows.map((row, at) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: gaps may share a name; the list is fixed
            <Row key={at} row={row} isName={view !== null} />
          ))}
        </ol>
      )}
    </Card>
  );
}
