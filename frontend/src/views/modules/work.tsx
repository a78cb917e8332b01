import type { ReactNode } from 'react';
import type { Narrowing } from '../../api/queries';
import { useTraceQuery } from '../../api/queries';
import type { Table } from '../../api/types.gen';
import { quantityExact } from '../../core/format';
import { shortName } from '../../core/names';
import { cutNote, type ShareRow, ShareRows } from '../../widgets/details/parts';
import { Goto } from '../../widgets/goto';
import { Loaded } from '../../widgets/loaded';
import { useSegments } from '../../widgets/segmented';
import { cellOf } from '../../widgets/table/rows';

const SHOWN = 12;
const SCOPES = [
  { id: 'within', label: 'Including submodules' },
  { id: 'own', label: 'Self' },
] as const;

interface ListOptions {
  readonly table: Table;
  readonly view: 'operators' | 'kernels';
  /** The column with the time, ns. */
  readonly time: string;
}

/** The longest operators or kernels, relative to the first. */
function rowsOf({ table, view, time }: ListOptions): ShareRow[] {
  const timeOf = (at: number): number => Number(cellOf(table, time, at));
  const rows = Array.from({ length: table.row_count }, (_, at) => at).filter(
    (at) => timeOf(at) > 0,
  );
  const whole = rows.reduce((sum, at) => sum + timeOf(at), 0);
  return rows.slice(0, SHOWN).map((at) => {
    const name = String(cellOf(table, 'name', at));
    const phase = String(cellOf(table, 'phase', at));
    return {
      key: `${name} ${phase}`,
      title: `${name}, ${phase}\n${quantityExact(timeOf(at), 'ns')}`,
      name: (
        <>
          <Goto to={{ view, search: `"${name}"` }}>{shortName(name)}</Goto>{' '}
          <span className="note">{phase}</span>
        </>
      ),
      share: timeOf(at) / whole,
      ns: timeOf(at),
      calls: Number(cellOf(table, 'call_count', at)),
    };
  });
}

/** A list with the number of rows that are left out. */
function WorkList(props: ListOptions & { readonly title: string }): ReactNode {
  const { table, title } = props;
  const rows = rowsOf(props);
  if (rows.length === 0) return <p className="muted">{title}: none.</p>;
  return (
    <ShareRows
      title={title}
      note={cutNote(rows.length, table.all_row_count ?? table.row_count)}
      rows={rows}
    />
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
              />
              {hasDevice && (
                <WorkList
                  title="Kernels and copies"
                  table={kernels}
                  view="kernels"
                  time="total_ns"
                />
              )}
            </>
          );
        }}
      </Loaded>
    </div>
  );
}
