/** The files as rows of an export. Pure. */

import type { Column } from '../../api/types.gen';
import { column } from '../../core/columns';
import type { ExportTable } from '../../core/export';
import { recordedAt } from '../../core/recorded';
import type { FileLine } from './lines';

const COLUMNS: readonly Column[] = [
  column('run', 'Run', 'text'),
  column('worker', 'Worker', 'text'),
  column('rank', 'Rank', 'count'),
  column('span', 'Span', 'text'),
  column('file', 'File', 'text'),
  column('state', 'State', 'text'),
  column('size', 'Size', 'bytes'),
  column('events', 'Events', 'count'),
  column('recorded', 'Recorded (ns since 1970)', 'text'),
  column('damage', 'Worst damage', 'text'),
  column('problem', 'Problem', 'text'),
];

export function exportOf(files: readonly FileLine[]): ExportTable {
  const rows = files.map(({ run, worker, span }) => [
    run.name,
    worker.name,
    worker.rank,
    span.label,
    span.file,
    span.state,
    span.file_bytes,
    span.events,
    recordedAt(span.file),
    span.damage,
    span.problem?.message ?? null,
  ]);
  return { columns: COLUMNS, rows };
}
