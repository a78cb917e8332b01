/** The functions of a flame graph as a table. Pure. */
import type { Column, FlameFunctions, Table } from '../../api/types.gen';
import { column, tableOf } from '../../core/columns';
import type { ExportTable } from '../../core/export';
import type { Unit } from '../../core/units';
import type { Sort } from '../../state/location';
import { cellOf } from '../../widgets/table/rows';
import { hasCallCount } from './labels';

export const isComparedIn = (list: FlameFunctions): boolean =>
  list.before_own.length > 0 || list.before_whole > 0;

/** The divisor of the values of a side. */
export const stepsIn = (list: FlameFunctions, steps: number): number =>
  list.is_per_step ? Math.max(1, steps) : 1;

function columnsOf(list: FlameFunctions): Column[] {
  const per = list.is_per_step ? ' per step' : '';
  const isCompared = isComparedIn(list);
  const of = (key: string, label: string, help: string, unit: Unit = list.unit): Column =>
    column(key, label + per, unit, help);
  const calls = list.unit === 'bytes' ? 'Allocations' : 'Calls';
  const before = [
    of('before_own', 'Self before', 'Excluding callees, in the baseline'),
    of('before_total', 'Total before', 'Including callees, in the baseline'),
    of('before_calls', `${calls} before`, 'In the baseline', 'count'),
  ];
  return [
    column('name', 'Function', 'code', 'The called function'),
    { ...column('kind', 'Kind', 'text'), hidden: true },
    ...(isCompared ? [of('change', 'Change', 'Of the self value; sorted by magnitude')] : []),
    of('own', 'Self', 'Excluding callees'),
    of('total', 'Total', 'Including callees; recursive calls count once'),
    {
      ...of(
        'calls',
        calls,
        'Counted as in Operators; – if it appears only in the stacks of others',
        'count',
      ),
      hidden: isCompared,
    },
    ...(isCompared ? before.map((each) => ({ ...each, hidden: true })) : []),
  ];
}

/** Self value, total and calls of each function, on both sides of a comparison. */
export function functionsTable(list: FlameFunctions): Table {
  const steps = stepsIn(list, list.steps);
  const stepsBefore = stepsIn(list, list.before_steps);
  const callsOf = (calls: number, total: number): number | null =>
    hasCallCount({ calls, total }, list.unit) ? calls : null;
  const cells = list.names.map((name, at) => {
    const per = (values: readonly number[]): number => (values[at] ?? 0) / steps;
    const before = (values: readonly number[]): number => (values[at] ?? 0) / stepsBefore;
    const change = per(list.own) - before(list.before_own);
    return {
      name,
      kind: list.kinds[list.name_kinds[at] ?? -1]?.id ?? 'rest',
      change,
      size_of_change: Math.abs(change),
      own: per(list.own),
      total: per(list.total),
      calls: callsOf(per(list.calls), per(list.total)),
      before_own: before(list.before_own),
      before_total: before(list.before_total),
      before_calls: callsOf(before(list.before_calls), before(list.before_total)),
    };
  });
  return tableOf(columnsOf(list), cells);
}

/** The order in the URL; by default the largest self value or change first. */
export function orderFrom(sort: Sort | null, { columns }: Table): Sort {
  const keys = columns.filter(({ hidden }) => !hidden).map(({ key }) => key);
  if (sort && keys.includes(sort.key)) return sort;
  return { key: keys.includes('change') ? 'change' : 'own', descending: true };
}

/** Changes are ordered by magnitude. */
export const sortColumn = ({ key }: Sort): string => (key === 'change' ? 'size_of_change' : key);

export function exportOf(list: FlameFunctions): ExportTable {
  const table = functionsTable(list);
  const columns = table.columns.filter(({ key }) => key !== 'change');
  const rows = list.names.map((_, at) => columns.map(({ key }) => cellOf(table, key, at)));
  return { columns, rows };
}
