/** The health of a recording as a file. */

import type { Column, HealthItem, WorkerReport } from '../../api/types.gen';
import type { ExportTable } from '../../core/export';
import type { CellValue } from '../../core/format';
import type { Selection } from '../../state/selection';
import type { ExportFormat } from '../../widgets/export_menu';
import { saveTable } from '../../widgets/save_table';

interface Field {
  readonly key: string;
  readonly label: string;
  readonly unit: Column['unit'];
  readonly of: (item: HealthItem) => CellValue;
}

const FIELDS: readonly Field[] = [
  { key: 'kind', label: 'kind', unit: 'code', of: (item) => item.kind },
  { key: 'nature', label: 'nature', unit: 'text', of: (item) => item.nature },
  { key: 'severity', label: 'severity', unit: 'text', of: (item) => item.severity },
  { key: 'count', label: 'count', unit: 'count', of: (item) => item.count },
  { key: 'of_count', label: 'of', unit: 'count', of: (item) => item.of_count },
  { key: 'lost', label: 'lost', unit: 'bytes', of: (item) => item.lost_bytes },
  { key: 'message', label: 'message', unit: 'text', of: (item) => item.message },
  { key: 'action', label: 'what was done', unit: 'text', of: (item) => item.action },
  { key: 'remedy', label: 'remedy', unit: 'text', of: (item) => item.remedy },
  { key: 'effect', label: 'effect', unit: 'text', of: (item) => item.effect },
  { key: 'affects', label: 'affects', unit: 'text', of: (item) => item.affects.join('; ') },
  {
    key: 'first',
    label: 'first at',
    unit: 'bytes',
    of: (item) => item.examples[0]?.offset_bytes ?? null,
  },
];

export function healthTable(items: readonly HealthItem[]): ExportTable {
  return {
    columns: FIELDS.map(({ key, label, unit }) => ({ key, label, unit, help: '', hidden: false })),
    rows: items.map((item) => FIELDS.map((field) => field.of(item))),
  };
}

function asJson(worker: WorkerReport, { run, span }: Selection): string {
  const { name, rank, events, inflated_bytes, reader, dialect, producer, synthetic } = worker;
  const { fingerprint, health, record_next, profile_call } = worker;
  const about = { file: span.file, run: run.name, name, span: span.label, rank, synthetic };
  const read = { file_bytes: span.file_bytes, inflated_bytes, events, reader, dialect, producer };
  const found = { fingerprint, health, record_next, profile_call };
  return `${JSON.stringify({ ...about, ...read, ...found }, null, 1)}\n`;
}

interface Options {
  readonly worker: WorkerReport;
  readonly selection: Selection;
  readonly format: ExportFormat;
}

export function save({ worker, selection, format }: Options): void {
  const { run, worker: chosen, span } = selection;
  saveTable({
    name: [run.name, chosen.name, span.label, 'health'],
    format,
    table: healthTable(worker.health),
    about: () => asJson(worker, selection),
  });
}
