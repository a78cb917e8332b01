/** The functions of a flame graph as a table for a file, in full precision. Pure. */
import type { Column, FlameFunctions } from '../../api/types.gen';
import type { ExportTable } from '../../core/export';
import type { Side } from './layout';
import { isComparedIn, rowsOf } from './listing';
import { callsKnown } from './words';

export function exportOf(said: FlameFunctions): ExportTable {
  const of = said.is_per_step ? ' a step' : '';
  const value = (key: string, label: string, help: string): Column => ({
    key,
    label: label + of,
    unit: said.unit,
    help,
    hidden: false,
  });
  const name: Column = { key: 'name', label: 'Function', unit: 'code', help: '', hidden: false };
  const kind: Column = { key: 'kind', label: 'Kind', unit: 'text', help: '', hidden: false };
  const calls: Column = { ...kind, key: 'calls', label: `Calls${of}`, unit: 'count' };
  const after = [
    value('own', 'Own', 'Without what it calls'),
    value('total', 'Total', 'With what it calls'),
    calls,
  ];
  const before = [
    value('before_own', 'Own before', 'Without what it calls, in the baseline'),
    value('before_total', 'Total before', 'With what it calls, in the baseline'),
    { ...calls, key: 'before_calls', label: `Calls before${of}` },
  ];
  const isCompared = isComparedIn(said);
  const callsOf = (side: Side): number | null => (callsKnown(side, said.unit) ? side.calls : null);
  return {
    columns: [name, kind, ...after, ...(isCompared ? before : [])],
    rows: rowsOf(said).map((row) => [
      row.name,
      row.kind,
      row.own,
      row.total,
      callsOf(row),
      ...(row.before ? [row.before.own, row.before.total, callsOf(row.before)] : []),
    ]),
  };
}
