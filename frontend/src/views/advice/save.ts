/** Exports the advice: a table of the findings, or the whole report. */
import type { Column, MergedOutcome, Outcome, RunReport } from '../../api/types.gen';
import { type DecisiveSaving, decisiveSaving } from '../../core/claims';
import { column } from '../../core/columns';
import type { ExportTable } from '../../core/export';
import type { CellValue } from '../../core/format';
import type { ExportFormat } from '../../widgets/export_menu';
import { saveTable } from '../../widgets/save_table';

type Field<Row> = readonly [column: Column, read: (row: Row) => CellValue];

const PER_STEP = 'Per step; without steps, of the window.';
const OF_JOB = 'Of the step of the job.';

const text = <Row>(key: string, read: (row: Row) => CellValue): Field<Row> => [
  column(key, key, 'text'),
  read,
];

const code = <Row>(key: string, read: (row: Row) => CellValue): Field<Row> => [
  column(key, key, 'code'),
  read,
];

const HEAD: readonly Field<Outcome>[] = [
  code('rule', ({ rule }) => rule),
  text('title', ({ title }) => title),
  text('category', ({ category }) => category),
  text('severity', ({ severity }) => severity),
  text('confidence', ({ confidence }) => confidence),
];

const savingOf =
  (read: (saving: DecisiveSaving) => number) =>
  ({ claim }: Outcome): number | undefined =>
    claim ? read(decisiveSaving(claim)) : undefined;

const OF_TRACE: readonly Field<Outcome>[] = [
  text('worker', ({ worker }) => worker),
  text('span', ({ span }) => span),
  [column('low', 'saves at least', 'ns', PER_STEP), savingOf(({ lowNs }) => lowNs)],
  [column('high', 'saves at most', 'ns', PER_STEP), savingOf(({ highNs }) => highNs)],
  [column('share', 'saves at most', 'share', PER_STEP), savingOf(({ share }) => share)],
  text('of the step', ({ claim }) => claim?.decisive_step),
  text('steps', ({ claim }) => claim?.steps),
];

const OF_SEVERAL: readonly Field<MergedOutcome>[] = [
  text('where', ({ where }) => where),
  text('when', ({ when }) => when),
  [
    column('job_low', 'saves the job at least', 'share', OF_JOB),
    ({ job_saving }) => job_saving?.low_share,
  ],
  [
    column('job_high', 'saves the job at most', 'share', OF_JOB),
    ({ job_saving }) => job_saving?.high_share,
  ],
];

const TAIL: readonly Field<Outcome>[] = [
  text('message', ({ message }) => message),
  text('fix', ({ fix }) => fix?.summary),
  text('effort', ({ effort }) => effort),
  text('risk', ({ risk }) => risk),
  code('lines', ({ locations }) => locations.map(({ path, line }) => `${path}:${line}`).join('; ')),
  text('doubts', ({ doubts }) => doubts.join('; ')),
  code('fingerprint', ({ fingerprint }) => fingerprint),
];

const tableOf = <Row>(fields: readonly Field<Row>[], rows: readonly Row[]): ExportTable => ({
  columns: fields.map(([head]) => head),
  rows: rows.map((row) => fields.map(([, read]) => read(row))),
});

const ofMerged = ([head, read]: Field<Outcome>): Field<MergedOutcome> => [
  head,
  ({ outcome }) => read(outcome),
];

/** Findings of a trace and its run, or the merged findings of a job. */
export type Findings =
  | { readonly outcomes: readonly Outcome[] }
  | { readonly merged: readonly MergedOutcome[] };

export function findingsTable(findings: Findings): ExportTable {
  if ('outcomes' in findings) return tableOf([...HEAD, ...OF_TRACE, ...TAIL], findings.outcomes);
  return tableOf([...HEAD.map(ofMerged), ...OF_SEVERAL, ...TAIL.map(ofMerged)], findings.merged);
}

interface Options {
  readonly report: RunReport;
  readonly name: readonly string[];
  readonly format: ExportFormat;
  readonly findings: Findings;
}

/** The findings as CSV, or the whole report as JSON, as in `stepscope schema`. */
export function saveAdvice({ report, name, format, findings }: Options): void {
  saveTable({
    name: [...name, 'advice'],
    format,
    table: findingsTable(findings),
    about: () => `${JSON.stringify(report, null, 1)}\n`,
  });
}
