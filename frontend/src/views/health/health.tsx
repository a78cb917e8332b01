import type { ReactNode } from 'react';
import type { Column, HealthItem, RunReport, WorkerReport } from '../../api/types.gen';
import { column } from '../../core/columns';
import type { ExportTable } from '../../core/export';
import { type CellValue, plural } from '../../core/format';
import { ofNature, reportOf } from '../../core/health';
import type { Selection } from '../../state/selection';
import { Empty } from '../../widgets/empty';
import { TableExport } from '../../widgets/table_export';
import { ViewHeader } from '../../widgets/view_header';
import { FileFacts } from './file_facts';
import { Files } from './files';
import { Items } from './items';
import { RecordNext } from './record_next';
import './health.css';

interface Props {
  readonly report: RunReport;
  readonly selection: Selection;
}

type Field = readonly [column: Column, read: (item: HealthItem) => CellValue];

const FIELDS: readonly Field[] = [
  [column('kind', 'kind', 'code'), (item) => item.kind],
  [column('nature', 'nature', 'text'), (item) => item.nature],
  [column('severity', 'severity', 'text'), (item) => item.severity],
  [column('count', 'count', 'count'), (item) => item.count],
  [column('of_count', 'of', 'count'), (item) => item.of_count],
  [column('lost', 'lost', 'bytes'), (item) => item.lost_bytes],
  [column('message', 'message', 'text'), (item) => item.message],
  [column('action', 'action', 'text'), (item) => item.action],
  [column('remedy', 'remedy', 'text'), (item) => item.remedy],
  [column('effect', 'effect', 'text'), (item) => item.effect],
  [column('affects', 'affects', 'text'), (item) => item.affects.join('; ')],
  [column('first', 'first at', 'bytes'), (item) => item.examples[0]?.offset_bytes ?? null],
];

const healthTable = (items: readonly HealthItem[]): ExportTable => ({
  columns: FIELDS.map(([head]) => head),
  rows: items.map((item) => FIELDS.map(([, read]) => read(item))),
});

function asJson(worker: WorkerReport, { run, span }: Selection): string {
  const { name, rank, events, inflated_bytes, reader, dialect, producer, synthetic } = worker;
  const { fingerprint, health, record_next, profile_call } = worker;
  const about = { file: span.file, run: run.name, name, span: span.label, rank, synthetic };
  const read = { file_bytes: span.file_bytes, inflated_bytes, events, reader, dialect, producer };
  const content = { fingerprint, health, record_next, profile_call };
  return `${JSON.stringify({ ...about, ...read, ...content }, null, 1)}\n`;
}

/** The numbers of damaged and missing items. */
function noteOf(items: readonly HealthItem[]): string {
  const damage = ofNature(items, 'damage').length;
  const gaps = ofNature(items, 'gap').length;
  const notes = ofNature(items, 'note').length;
  const parts = [
    damage === 0 ? 'no damage' : `${plural(damage, 'kind')} of damage`,
    gaps === 0 ? 'nothing missing' : `${plural(gaps, 'item')} not recorded`,
    notes === 0 ? '' : plural(notes, 'note'),
  ];
  return parts.filter((part) => part !== '').join(', ');
}

/** The health of a trace: damage, missing data, and how to record it. */
export function Health({ report, selection }: Props): ReactNode {
  const { run, worker: shownWorker, span } = selection;
  const worker = reportOf(report, span.trace);
  if (!worker) {
    return (
      <Empty icon="info" title={`No health data on ${shownWorker.name}, span ${span.label} yet`}>
        <p>This trace has just been read; its health follows in a moment.</p>
      </Empty>
    );
  }
  const outcomes = report.outcomes.filter((outcome) => outcome.trace === span.trace);
  return (
    <div className="stack">
      <ViewHeader title="Health" note={noteOf(worker.health)}>
        <TableExport
          note="CSV: damage and missing data. JSON: all of this page."
          name={[run.name, shownWorker.name, span.label, 'health']}
          table={() => healthTable(worker.health)}
          about={() => asJson(worker, selection)}
        />
      </ViewHeader>
      <FileFacts worker={worker} selection={selection} />
      <div className={worker.profile_call === '' ? 'health-body' : 'health-body halves'}>
        <div className="stack">
          <Items
            title="Damage"
            note="problems of the file, and how they were handled"
            items={ofNature(worker.health, 'damage')}
            outcomes={outcomes}
          />
          <Items
            title="Not recorded"
            note="data that the trace does not contain"
            items={ofNature(worker.health, 'gap')}
            outcomes={outcomes}
          />
          <Items
            title="Notes"
            note=""
            items={ofNature(worker.health, 'note')}
            outcomes={outcomes}
          />
        </div>
        <RecordNext worker={worker} />
      </div>
      <Files run={run} trace={span.trace} />
    </div>
  );
}
