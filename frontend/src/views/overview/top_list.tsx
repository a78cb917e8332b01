import type { ReactNode } from 'react';
import type { TopRow } from '../../api/types.gen';
import { quantity, quantityExact, share } from '../../core/format';
import { shortName } from '../../core/names';
import { Goto } from '../../widgets/goto';
import { Icon } from '../../widgets/icon';

interface Props {
  readonly title: string;
  /** The view that shows all of them. */
  readonly view: string | null;
  readonly rows: readonly TopRow[];
}

function Row({ row, isName }: { readonly row: TopRow; readonly isName: boolean }): ReactNode {
  return (
    <li>
      <Goto to={{ view: row.view, search: row.search }} className="top-row" title={row.name}>
        <span className={isName ? 'top-name mono' : 'top-name'}>{shortName(row.name)}</span>
        <span className="top-detail">{row.detail}</span>
        <span className="top-value" title={quantityExact(row.value, row.unit)}>
          {quantity(row.value, row.unit)}
          {row.share !== null && <small>{share(row.share)}</small>}
        </span>
      </Goto>
    </li>
  );
}

/** The few largest, each a link to the whole story. */
export function TopList({ title, view, rows }: Props): ReactNode {
  return (
    <section className="card top">
      <div className="card-head">
        <h2>{title}</h2>
        {view && rows.length > 0 && (
          <Goto to={{ view }} className="all">
            All <Icon name="arrow" size={13} />
          </Goto>
        )}
      </div>
      {rows.length === 0 ? (
        <p className="muted">None in this recording.</p>
      ) : (
        <ol>
          {rows.map((row, at) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: gaps may share a name; the list is fixed
            <Row key={at} row={row} isName={view !== null} />
          ))}
        </ol>
      )}
    </section>
  );
}
