/** The advice as a file: a table of the findings, or the whole report. */
import type { Column, MergedOutcome, Outcome, RunReport } from '../../api/types.gen';
import type { ExportTable } from '../../core/export';
import type { CellValue } from '../../core/format';
import type { ExportFormat } from '../../widgets/export_menu';
import { saveTable } from '../../widgets/save_table';

interface Field<Row> {
  readonly key: string;
  readonly label: string;
  readonly unit: Column['unit'];
  readonly help?: string;
  readonly of: (row: Row) => CellValue;
}

const A_STEP = 'Of a step; of a recording without steps, of its window.';

const HEAD: readonly Field<Outcome>[] = [
  { key: 'rule', label: 'rule', unit: 'code', of: ({ rule }) => rule },
  { key: 'title', label: 'title', unit: 'text', of: ({ title }) => title },
  { key: 'category', label: 'category', unit: 'text', of: ({ category }) => category },
  { key: 'severity', label: 'severity', unit: 'text', of: ({ severity }) => severity },
  { key: 'confidence', label: 'confidence', unit: 'text', of: ({ confidence }) => confidence },
];

const OF_ONE: readonly Field<Outcome>[] = [
  { key: 'worker', label: 'worker', unit: 'text', of: ({ worker }) => worker },
  { key: 'span', label: 'span', unit: 'text', of: ({ span }) => span },
  {
    key: 'net_low',
    label: 'saves at least',
    unit: 'ns',
    help: A_STEP,
    of: ({ claim }) => claim?.net_low_ns,
  },
  {
    key: 'net_high',
    label: 'saves at most',
    unit: 'ns',
    help: A_STEP,
    of: ({ claim }) => claim?.net_high_ns,
  },
  {
    key: 'net_share',
    label: 'saves at most',
    unit: 'share',
    help: A_STEP,
    of: ({ claim }) => claim?.net_share,
  },
  { key: 'steps', label: 'steps', unit: 'text', of: ({ claim }) => claim?.steps },
];

const OF_SEVERAL: readonly Field<MergedOutcome>[] = [
  { key: 'where', label: 'where', unit: 'text', of: ({ where }) => where },
  { key: 'when', label: 'when', unit: 'text', of: ({ when }) => when },
  {
    key: 'job_low',
    label: 'saves the job at least',
    unit: 'share',
    help: 'Of its step.',
    of: ({ job_saving }) => job_saving?.low_share,
  },
  {
    key: 'job_high',
    label: 'saves the job at most',
    unit: 'share',
    help: 'Of its step.',
    of: ({ job_saving }) => job_saving?.high_share,
  },
];

const TAIL: readonly Field<Outcome>[] = [
  { key: 'message', label: 'message', unit: 'text', of: ({ message }) => message },
  { key: 'fix', label: 'fix', unit: 'text', of: ({ fix }) => fix?.summary },
  { key: 'effort', label: 'effort', unit: 'text', of: ({ effort }) => effort },
  { key: 'risk', label: 'risk', unit: 'text', of: ({ risk }) => risk },
  {
    key: 'lines',
    label: 'lines',
    unit: 'code',
    of: ({ locations }) => locations.map(({ path, line }) => `${path}:${line}`).join('; '),
  },
  { key: 'doubts', label: 'doubts', unit: 'text', of: ({ doubts }) => doubts.join('; ') },
  { key: 'fingerprint', label: 'fingerprint', unit: 'code', of: ({ fingerprint }) => fingerprint },
];

function tableOf<Row>(fields: readonly Field<Row>[], rows: readonly Row[]): ExportTable {
  return {
    columns: fields.map(({ key, label, unit, help = '' }) => ({
      key,
      label,
      unit,
      help,
      hidden: false,
    })),
    rows: rows.map((row) => fields.map((field) => field.of(row))),
  };
}

const ofMerged = ({ of, ...field }: Field<Outcome>): Field<MergedOutcome> => ({
  ...field,
  of: ({ outcome }) => of(outcome),
});

/** Of one recording and of the run that it is of; or of a job, each once, with where and when it holds. */
export type Findings =
  | { readonly outcomes: readonly Outcome[] }
  | { readonly merged: readonly MergedOutcome[] };

export function findingsTable(findings: Findings): ExportTable {
  if ('outcomes' in findings) return tableOf([...HEAD, ...OF_ONE, ...TAIL], findings.outcomes);
  return tableOf([...HEAD.map(ofMerged), ...OF_SEVERAL, ...TAIL.map(ofMerged)], findings.merged);
}

interface Options {
  readonly report: RunReport;
  readonly name: readonly string[];
  readonly format: ExportFormat;
  readonly findings: Findings;
}

/** The findings as CSV; as JSON all that the server says, in the form that a run has in `stepscope schema`. */
export function saveAdvice({ report, name, format, findings }: Options): void {
  saveTable({
    name: [...name, 'advice'],
    format,
    table: findingsTable(findings),
    about: () => `${JSON.stringify(report, null, 1)}\n`,
  });
}
