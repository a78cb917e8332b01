/** The rows of a comparison as a table. Pure. */
import type { Change, Column, ComparisonResult, ModuleRow, Row, Table } from '../../api/types.gen';
import { column, tableOf } from '../../core/columns';
import { type CellValue, plural } from '../../core/format';
import { deltaOf, isSignificant } from './phrases';

/** The time of the device or the host; `either` is the more relevant one of each row. */
export type Figure = 'either' | 'device' | 'host' | 'device-total' | 'host-total';
export type Only = 'changed' | 'slower' | 'faster' | 'added' | 'gone' | 'all';
export type AnyRow = Row | ModuleRow;
export type StatusLabels = ComparisonResult['status_labels'];

export const isNoiseRow = ({ status }: AnyRow): boolean =>
  status === 'same' || status === 'untested';
export const isRow = (row: AnyRow): row is Row => 'kind' in row;

/** Whether a row sums what is too small for rows of its own. */
export const isRest = (row: AnyRow): boolean => (isRow(row) ? row.kind === 'rest' : row.is_rest);

function rowName(row: AnyRow): string {
  if (isRest(row)) return `(the rest: ${plural(row.summed_count, 'row')})`;
  return row.name === '' && !isRow(row) ? '(in no module)' : row.name;
}

export function isOf(row: AnyRow, only: Only): boolean {
  if (only === 'all') return true;
  return only === 'changed' ? !isNoiseRow(row) : row.status === only;
}

const hasDeviceTime = ({ device }: AnyRow): boolean => device.before > 0 || device.after > 0;

/** Whether any row has device time. */
export const isOnDevice = (rows: readonly AnyRow[]): boolean => rows.some(hasDeviceTime);

/** The device time if there is any, unless only the host's change is significant. */
function whereOf(row: AnyRow, figure: Figure): 'device' | 'host' {
  if (figure !== 'either') return figure.startsWith('device') ? 'device' : 'host';
  const isHost = isSignificant(row.host) && !isSignificant(row.device);
  return hasDeviceTime(row) && !isHost ? 'device' : 'host';
}

/** The change of a row; modules have no totals, as their time is the sum of their operators. */
export function changeOf(row: AnyRow, figure: Figure): Change {
  if (isRow(row) && figure === 'device-total') return row.device_total;
  if (isRow(row) && figure === 'host-total') return row.host_total;
  return row[whereOf(row, figure)];
}

export function shapesOf(row: AnyRow): string {
  if (!isRow(row) || isRest(row)) return '';
  if (row.summed_count > 1) return `${plural(row.summed_count, 'small row')} summed`;
  const [was, now] = [row.shapes_before.join('; '), row.shapes_after.join('; ')];
  return was === now || was === '' || now === '' ? was || now : `${was} → ${now}`;
}

const FIGURE_HELP: Readonly<Record<Figure, string>> = {
  either: 'device time per step if there is any, else host time excluding callees',
  device: 'device time per step, excluding work that callees launch',
  host: 'host time per step, excluding callees',
  'device-total': 'device time per step, including callees',
  'host-total': 'host time per step, including callees',
};

const OPTIONAL: ReadonlySet<string> = new Set(['place', 'matched_by', 'kind', 'shapes']);
/** Off until the user selects them. */
const HIDDEN: ReadonlySet<string> = new Set(['p', 'kind', 'shapes']);

function columnsOf(figure: Figure): Column[] {
  const what = FIGURE_HELP[figure];
  const statuses = 'New, gone, slower or faster; or not statistically significant.';
  const matched = 'The evidence that the rows of both sides correspond.';
  return [
    column('name', 'Name', 'code', 'The name of the row.'),
    column('status', 'Change', 'text', statuses),
    column('where', 'Time of', 'text', 'The time of the device or of the host.'),
    column('before', 'Before', 'ns', `Before: ${what}.`),
    column('after', 'After', 'ns', `After: ${what}.`),
    column('delta', 'Difference', 'ns', `After minus before: ${what}.`),
    column('relative', 'In %', 'share', 'The difference as a fraction of the value before.'),
    column('p', 'p', 'count', 'The probability of such a change in any row by chance.'),
    column('calls_before', 'Calls before', 'count', 'Calls per step, before.'),
    column('calls_after', 'Calls after', 'count', 'Calls per step, after.'),
    column('place', 'In', 'code', 'The module, or the launching operator.'),
    column('matched_by', 'Matched by', 'text', matched),
    column('kind', 'Kind', 'text', 'The kind of the row.'),
    column('shapes', 'Shapes', 'code', 'Shapes of its inputs; → if they changed.'),
  ].map((each) => ({ ...each, hidden: HIDDEN.has(each.key) }));
}

const NO_ROW = { kind: '', module: '', operator: '', matched_by: '' };

/** Cells by column; the module and the operator only identify a row. */
function cellsOf(row: AnyRow, figure: Figure, labels: StatusLabels): Record<string, CellValue> {
  const of = changeOf(row, figure);
  const { kind, module, operator, matched_by } = isRow(row) ? row : NO_ROW;
  return {
    name: rowName(row),
    status: labels[row.status] ?? row.status,
    where: whereOf(row, figure),
    before: of.before,
    after: of.after,
    delta: deltaOf(of),
    relative: of.before === 0 ? null : deltaOf(of) / of.before,
    p: of.p,
    calls_before: row.calls.before,
    calls_after: row.calls.after,
    place: module || operator,
    matched_by,
    kind,
    shapes: shapesOf(row),
    module,
    operator,
  };
}

/** The cells that identify a row in the URL. */
export const identityOf = (rows: readonly AnyRow[]): readonly string[] =>
  rows.some(isRow) ? ['name', 'kind', 'module', 'operator', 'shapes'] : ['name'];

/** A table of rows in the order of the comparison, without empty columns. */
export function rowsTable(rows: readonly AnyRow[], figure: Figure, labels: StatusLabels): Table {
  const cells = rows.map((row) => cellsOf(row, figure, labels));
  const isMixed = new Set(cells.map(({ where }) => where)).size > 1;
  const columns = columnsOf(figure).filter(
    ({ key }) =>
      (key !== 'where' || isMixed) &&
      (!OPTIONAL.has(key) || cells.some((cell) => cell[key] !== '')),
  );
  return tableOf(columns, cells);
}
