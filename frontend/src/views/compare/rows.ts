/** The rows of a comparison: filtered, sorted, as cells. Pure. */
import type { Change, Column, ModuleRow, Row } from '../../api/types.gen';
import { column } from '../../core/columns';
import type { CellValue } from '../../core/format';
import { compareValues } from '../../core/natural';
import type { Matcher } from '../../core/search';
import type { Sort } from '../../state/location';
import { nameOfRow } from '../../widgets/table/rows';
import { deltaOf, isSignificant, STATUS_LABELS, type Status } from './phrases';

/** The time of the device or the host; `either` is the more relevant one of each row. */
export type Figure = 'either' | 'device' | 'host' | 'device-total' | 'host-total';
export type Only = 'changed' | 'slower' | 'faster' | 'added' | 'gone' | 'all';
export type AnyRow = Row | ModuleRow;

const NOISE: readonly Status[] = ['same', 'untested'];

export const isNoiseRow = (row: AnyRow): boolean => NOISE.includes(row.status);
export const isRow = (row: AnyRow): row is Row => 'kind' in row;
export const rowName = (row: AnyRow): string =>
  row.name === '' && !isRow(row) ? '(in no module)' : row.name;

export function isOf(row: AnyRow, only: Only): boolean {
  if (only === 'all') return true;
  return only === 'changed' ? !isNoiseRow(row) : row.status === only;
}

const hasDeviceTime = ({ device }: AnyRow): boolean => device.before > 0 || device.after > 0;

/** Whether any row has device time. */
export const isOnDevice = (rows: readonly AnyRow[]): boolean => rows.some(hasDeviceTime);

/** The device time if there is any, unless only the host's change is significant. */
function mainFigure(row: AnyRow): 'device' | 'host' {
  return hasDeviceTime(row) && (isSignificant(row.device) || !isSignificant(row.host))
    ? 'device'
    : 'host';
}

const whereOf = (row: AnyRow, figure: Figure): 'device' | 'host' => {
  if (figure === 'either') return mainFigure(row);
  return figure === 'device' || figure === 'device-total' ? 'device' : 'host';
};

/** The change of a row; modules have no totals, as their time is the sum of their operators. */
export function changeOf(row: AnyRow, figure: Figure): Change {
  if (isRow(row) && figure === 'device-total') return row.device_total;
  if (isRow(row) && figure === 'host-total') return row.host_total;
  return row[whereOf(row, figure)];
}

/** The module of a row, or the operator that launched it. */
const locationOf = (row: AnyRow): string => (isRow(row) ? row.module || row.operator : '');

export function shapesOf(row: AnyRow): string {
  if (!isRow(row)) return '';
  const [was, now] = [row.shapes_before.join('; '), row.shapes_after.join('; ')];
  return was === now || was === '' || now === '' ? was || now : `${was} → ${now}`;
}

const shareOf = ({ before, after }: Change): number | null =>
  before === 0 ? null : (after - before) / before;

type Cells = Readonly<Record<string, (row: AnyRow, figure: Figure) => CellValue>>;

/** The key of a row in the URL. */
export const rowKey = (row: AnyRow): string =>
  nameOfRow([row.name, ...(isRow(row) ? [row.kind, row.module, row.operator, shapesOf(row)] : [])]);

const CELLS: Cells = {
  name: rowName,
  status: (row) => STATUS_LABELS[row.status],
  where: (row, figure) => whereOf(row, figure),
  before: (row, figure) => changeOf(row, figure).before,
  after: (row, figure) => changeOf(row, figure).after,
  delta: (row, figure) => deltaOf(changeOf(row, figure)),
  relative: (row, figure) => shareOf(changeOf(row, figure)),
  p: (row, figure) => changeOf(row, figure).p,
  calls_before: (row) => row.calls.before,
  calls_after: (row) => row.calls.after,
  place: locationOf,
  matched_by: (row) => (isRow(row) ? row.matched_by : ''),
  kind: (row) => (isRow(row) ? row.kind : ''),
  shapes: shapesOf,
};

export const cellOf = (row: AnyRow, key: string, figure: Figure): CellValue =>
  CELLS[key]?.(row, figure) ?? null;

const FIGURE_HELP: Readonly<Record<Figure, string>> = {
  either: 'device time per step if there is any, else host time excluding callees',
  device: 'device time per step, excluding work that callees launch',
  host: 'host time per step, excluding callees',
  'device-total': 'device time per step, including callees',
  'host-total': 'host time per step, including callees',
};

/** Columns of exports and of the row details only. */
const UNSHOWN: readonly string[] = ['p', 'kind', 'shapes'];

/** The columns of a table of rows, without empty ones. */
export function columnsOf(rows: readonly AnyRow[], figure: Figure): Column[] {
  const what = FIGURE_HELP[figure];
  const all = [
    column('name', 'Name', 'code', 'The name of the row.'),
    column(
      'status',
      'Change',
      'text',
      'New, gone, slower or faster; or not statistically significant.',
    ),
    column('where', 'Time of', 'text', 'The time of the device or of the host.'),
    column('before', 'Before', 'ns', `Before: ${what}.`),
    column('after', 'After', 'ns', `After: ${what}.`),
    column('delta', 'Difference', 'ns', `After minus before: ${what}.`),
    column('relative', 'In %', 'share', 'The difference as a fraction of the value before.'),
    column('p', 'p', 'count', 'The probability of such a change in any row by chance.'),
    column('calls_before', 'Calls before', 'count', 'Calls per step, before.'),
    column('calls_after', 'Calls after', 'count', 'Calls per step, after.'),
    column('place', 'In', 'code', 'The module, or the launching operator.'),
    column(
      'matched_by',
      'Matched by',
      'text',
      'The evidence that the rows of both sides correspond.',
    ),
    column('kind', 'Kind', 'text', 'The kind of the row.'),
    column('shapes', 'Shapes', 'code', 'Shapes of its inputs; → if they changed.'),
  ];
  const optional = ['place', 'matched_by', 'kind', 'shapes'];
  const isMixed = new Set(rows.map((row) => whereOf(row, figure))).size > 1;
  return all.filter(
    ({ key }) =>
      (key !== 'where' || isMixed) &&
      (!optional.includes(key) || rows.some((row) => cellOf(row, key, figure) !== '')),
  );
}

export const shownColumns = (columns: readonly Column[]): Column[] =>
  columns.filter(({ key }) => !UNSHOWN.includes(key));

export interface RowFilter {
  readonly only: Only;
  /** Of device work: `kernel`, `copy`, `memory-set`; null: all. */
  readonly kind: string | null;
  readonly figure: Figure;
  readonly matcher: Matcher;
  /** Null: the order of the comparison, the largest changes first. */
  readonly sort: Sort | null;
}

const isMatch = (row: AnyRow, matcher: Matcher): boolean =>
  matcher.kind !== 'test' ||
  [rowName(row), locationOf(row), shapesOf(row)].some((text) => matcher.test(text));

const isOfKind = (row: AnyRow, kind: string | null): boolean =>
  kind === null || (isRow(row) && row.kind === kind);

export function shownRows(rows: readonly AnyRow[], filter: RowFilter): AnyRow[] {
  const { only, kind, figure, matcher, sort } = filter;
  const matching = rows.filter(
    (row) => isOf(row, only) && isOfKind(row, kind) && isMatch(row, matcher),
  );
  if (sort === null || !(sort.key in CELLS)) return matching;
  return matching.toSorted((a, b) =>
    compareValues(cellOf(a, sort.key, figure), cellOf(b, sort.key, figure), sort.descending),
  );
}
