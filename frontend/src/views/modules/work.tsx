import { type ReactNode, useId } from 'react';
import type { Narrowing } from '../../api/queries';
import { useTraceQuery } from '../../api/queries';
import type { Table } from '../../api/types.gen';
import { count, duration, plural, quantityExact } from '../../core/format';
import { shortName } from '../../core/names';
import { Goto } from '../../widgets/goto';
import { Loaded } from '../../widgets/loaded';
import { useSegments } from '../../widgets/segmented';
import { cellOf } from '../../widgets/table/rows';

const SHOWN = 12;
const SCOPES = [
  { id: 'within', label: 'Including submodules' },
  { id: 'own', label: 'Self' },
] as const;

interface ListProps {
  readonly title: string;
  readonly table: Table;
  readonly view: 'operators' | 'kernels';
  /** The column with the time, ns. */
  readonly time: string;
  readonly none: string;
}

/** The longest operators or kernels. */
function WorkList({ title, table, view, time, none }: ListProps): ReactNode {
  const id = useId();
  const rows = Array.from({ length: table.row_count }, (_, at) => at)
    .filter((at) => Number(cellOf(table, time, at)) > 0)
    .slice(0, SHOWN);
  const all = table.all_row_count ?? table.row_count;
  const most = Math.max(1, ...rows.map((at) => Number(cellOf(table, time, at))));
  return (
    <section className="module-work" aria-labelledby={id}>
      <h3 id={id}>{title}</h3>
      {rows.length === 0 && <p className="muted">{none}</p>}
      <ul>
        {rows.map((at) => {
          const name = String(cellOf(table, 'name', at));
          const ns = Number(cellOf(table, time, at));
          const phase = String(cellOf(table, 'phase', at));
          return (
            <li key={`${name} ${phase}`}>
              <Goto to={{ view, search: `"${name}"` }} title={name}>
                {shortName(name)}
              </Goto>
              <span className="number strong" title={quantityExact(ns, 'ns')}>
                {duration(ns)}
              </span>
              <span className="note">
                {phase}, {plural(Number(cellOf(table, 'call_count', at)), 'call')}
              </span>
              <span className="track" aria-hidden="true">
                <span style={{ width: `${(ns / most) * 100}%` }} />
              </span>
            </li>
          );
        })}
      </ul>
      {all > rows.length && <p className="muted">and {count(all - rows.length)} more</p>}
    </section>
  );
}

interface Props {
  readonly trace: string;
  readonly narrowing: Narrowing | null;
  readonly row?: number;
  readonly className?: string;
}

/** The operators and the device work of a module, or of a class. */
export function Work({ trace, narrowing, row, className }: Props): ReactNode {
  const [scope, scopes] = useSegments('count', { label: 'Scope', segments: SCOPES });
  const { start_ns, end_ns } = narrowing ?? {};
  const query = useTraceQuery(trace, 'modules/work', {
    row,
    class_name: className,
    within: scope === 'within',
    start_ns,
    end_ns,
  });
  return (
    <div className={query.isPlaceholderData ? 'detail stale' : 'detail'}>
      {scopes}
      <Loaded query={query} what="The work of the module">
        {({ operators, kernels }) => {
          const hasDevice = kernels.row_count > 0;
          return (
            <>
              <WorkList
                title={hasDevice ? 'Operators, by device time' : 'Operators'}
                table={operators}
                view="operators"
                time={hasDevice ? 'device_self_ns' : 'host_self_ns'}
                none="No operators."
              />
              {hasDevice && (
                <WorkList
                  title="Kernels and copies"
                  table={kernels}
                  view="kernels"
                  time="total_ns"
                  none="No device work."
                />
              )}
            </>
          );
        }}
      </Loaded>
    </div>
  );
}
