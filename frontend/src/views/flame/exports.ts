import type { Column, FlameFunctions } from '../../api/types.gen';
import { column } from '../../core/columns';
import type { ExportTable } from '../../core/export';
import { hasCallCount } from './labels';
import type { Side } from './layout';
import { isComparedIn, rowsOf } from './listing';

export function exportOf(list: FlameFunctions): ExportTable {
  const per = list.is_per_step ? ' per step' : '';
  const value = (key: string, label: string, help: string): Column =>
    column(key, label + per, list.unit, help);
  const after = [
    value('own', 'Self', 'Excluding callees'),
    value('total', 'Total', 'Including callees'),
    column('calls', `Calls${per}`, 'count'),
  ];
  const before = [
    value('before_own', 'Self before', 'Excluding callees, in the baseline'),
    value('before_total', 'Total before', 'Including callees, in the baseline'),
    column('before_calls', `Calls before${per}`, 'count'),
  ];
  const callsOf = (side: Side): number | null =>
    hasCallCount(side, list.unit) ? side.calls : null;
  return {
    columns: [
      column('name', 'Function', 'code'),
      column('kind', 'Kind', 'text'),
      ...after,
      ...(isComparedIn(list) ? before : []),
    ],
    rows: rowsOf(list).map((row) => [
      row.name,
      row.kind,
      row.own,
      row.total,
      callsOf(row),
      ...(row.before ? [row.before.own, row.before.total, callsOf(row.before)] : []),
    ]),
  };
}
