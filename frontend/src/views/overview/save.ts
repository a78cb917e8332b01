/** The steps of a recording as a file. */

import type { Overview } from '../../api/types.gen';
import { column } from '../../core/columns';
import type { ExportTable } from '../../core/export';
import type { ExportFormat } from '../../widgets/export_menu';
import { saveTable } from '../../widgets/save_table';

/** A row a step; what its parts are of it sums to its duration. */
export function stepTable({ steps, categories }: Overview): ExportTable {
  return {
    columns: [
      column('number', 'step', 'count', 'The number in `ProfilerStep#N`.'),
      column('name', 'name', 'text'),
      column('start', 'start', 'ns', 'From the first event of the trace.'),
      column('duration', 'duration', 'ns', 'Until the last device work launched in it ends.'),
      column('host_start', 'host start', 'ns', 'When the host began it.'),
      column('host_end', 'host end', 'ns', 'When the host ended it.'),
      ...categories.map(({ id, label, help }) => column(id, label, 'ns', help)),
    ],
    rows: steps.map((step) => [
      step.number,
      step.name,
      step.start_ns,
      step.duration_ns,
      step.host_start_ns,
      step.host_end_ns,
      ...categories.map((_, part) => step.parts_ns[part] ?? null),
    ]),
  };
}

/** The words of a file's name that say which recording it is of. */
export const recordingOf = (run: string, { worker, span }: Overview): readonly string[] => [
  run,
  worker,
  span,
];

export function saveSteps(run: string, overview: Overview, format: ExportFormat): void {
  const { worker, span, verdict, synthetic, window_ns, step } = overview;
  saveTable({
    name: [...recordingOf(run, overview), 'steps'],
    format,
    table: stepTable(overview),
    about: { run, worker, span, synthetic, verdict, window_ns, mean_step: step },
  });
}
