/** From the comparison's rows to those that the table shows: filtered, in order, as cells. Pure. */

import type { Change, Column, ModuleRow, Row } from '../../api/types.gen';
import { column } from '../../core/columns';
import type { CellValue } from '../../core/format';
import { natural } from '../../core/natural';
import type { Matcher } from '../../core/search';
import type { Sort } from '../../state/location';
import { nameOfRow } from '../../widgets/table/rows';
import { deltaOf, isReal, STATUS_WORDS, type Status } from './words';

/** Whose time: the device's, the host's, or of each row that which says most about it. */
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

/** Where there is none on a device, there is nothing to choose. */
export const isOnDevice = (rows: readonly AnyRow[]): boolean => rows.some(hasDeviceTime);

/** The device's time where it has any, unless only the host's change is told from noise. */
function mainFigure(row: AnyRow): 'device' | 'host' {
  return hasDeviceTime(row) && (isReal(row.device) || !isReal(row.host)) ? 'device' : 'host';
}

const whereOf = (row: AnyRow, figure: Figure): 'device' | 'host' => {
  if (figure === 'either') return mainFigure(row);
  return figure === 'device' || figure === 'device-total' ? 'device' : 'host';
};

/** A module's time is the sum of its operators' own: it has no other total. */
export function changeOf(row: AnyRow, figure: Figure): Change {
  if (isRow(row) && figure === 'device-total') return row.device_total;
  if (isRow(row) && figure === 'host-total') return row.host_total;
  return row[whereOf(row, figure)];
}

/** Where a row is: in which module, or by which operator it was launched. */
const placeOf = (row: AnyRow): string => (isRow(row) ? row.module || row.operator : '');

export function shapesOf(row: AnyRow): string {
  if (!isRow(row)) return '';
  const [was, now] = [row.shapes_before.join('; '), row.shapes_after.join('; ')];
  return was === now || was === '' || now === '' ? was || now : `${was} → ${now}`;
}

const shareOf = ({ before, after }: Change): number | null =>
  before === 0 ? null : (after - before) / before;

type Cells = Readonly<Record<string, (row: AnyRow, figure: Figure) => CellValue>>;

/** How the URL names a row. */
export const nameInUrl = (row: AnyRow): string =>
  nameOfRow([row.name, ...(isRow(row) ? [row.kind, row.module, row.operator, shapesOf(row)] : [])]);

const CELLS: Cells = {
  name: rowName,
  status: (row) => STATUS_WORDS[row.status],
  where: (row, figure) => whereOf(row, figure),
  before: (row, figure) => changeOf(row, figure).before,
  after: (row, figure) => changeOf(row, figure).after,
  delta: (row, figure) => deltaOf(changeOf(row, figure)),
  relative: (row, figure) => shareOf(changeOf(row, figure)),
  p: (row, figure) => changeOf(row, figure).p,
  calls_before: (row) => row.calls.before,
  calls_after: (row) => row.calls.after,
  place: placeOf,
  matched_by: (row) => (isRow(row) ? row.matched_by : ''),
  kind: (row) => (isRow(row) ? row.kind : ''),
  shapes: shapesOf,
};

export const cellOf = (row: AnyRow, key: string, figure: Figure): CellValue =>
  CELLS[key]?.(row, figure) ?? null;

const FIGURE_WORDS: Readonly<Record<Figure, string>> = {
  either: 'a step’s time on the device where it has any, else on the host without what it called',
  device: 'device time a step; of an operator, of what it launched itself',
  host: 'host time a step, without what it called',
  'device-total': 'device time a step, with that of what it called',
  'host-total': 'host time a step, with what it called',
};

/** In exports and in a row's details only. */
const UNSHOWN: readonly string[] = ['p', 'kind', 'shapes'];

/** Every column of a table of rows; those that say nothing of any row are left out. */
export function columnsOf(rows: readonly AnyRow[], figure: Figure): Column[] {
  const what = FIGURE_WORDS[figure];
  const all = [
    column('name', 'Name', 'code', 'What it is called.'),
    column(
      'status',
      'Change',
      'text',
      'New, gone, slower or faster; or within the steps’ own jitter.',
    ),
    column('where', 'Time of', 'text', 'Whose time it is: the device’s or the host’s.'),
    column('before', 'Before', 'ns', `Before: ${what}.`),
    column('after', 'After', 'ns', `After: ${what}.`),
    column('delta', 'Difference', 'ns', `After less before: ${what}.`),
    column('relative', 'In %', 'share', 'The difference as a share of what was before.'),
    column('p', 'p', 'count', 'The chance of such a change of any row if nothing had changed.'),
    column('calls_before', 'Calls before', 'count', 'Calls a step, before.'),
    column('calls_after', 'Calls after', 'count', 'Calls a step, after.'),
    column('place', 'In', 'code', 'The module around it, or the operator that launched it.'),
    column(
      'matched_by',
      'Matched by',
      'text',
      'What tells that rows of both sides are the same thing.',
    ),
    column('kind', 'Kind', 'text', 'What it is.'),
    column('shapes', 'Shapes', 'code', 'Shapes of its inputs; → where they are others after.'),
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

const isMissing = (value: CellValue): boolean => value === null || value === undefined;

/** What is not known comes last either way. */
function compare(a: CellValue, b: CellValue, descending: boolean): number {
  if (isMissing(a) || isMissing(b)) return Number(isMissing(a)) - Number(isMissing(b));
  const order =
    typeof a === 'number' && typeof b === 'number' ? a - b : natural.compare(String(a), String(b));
  return descending ? -order : order;
}

export interface Wanted {
  readonly only: Only;
  /** Of device work: `kernel`, `copy`, `memory-set`; null: all. */
  readonly kind: string | null;
  readonly figure: Figure;
  readonly matcher: Matcher;
  /** Null: the comparison's own order, what changed most before the rest. */
  readonly sort: Sort | null;
}

const isFound = (row: AnyRow, matcher: Matcher): boolean =>
  matcher.kind !== 'test' ||
  [rowName(row), placeOf(row), shapesOf(row)].some((text) => matcher.test(text));

const isOfKind = (row: AnyRow, kind: string | null): boolean =>
  kind === null || (isRow(row) && row.kind === kind);

export function shownRows(rows: readonly AnyRow[], wanted: Wanted): AnyRow[] {
  const { only, kind, figure, matcher, sort } = wanted;
  const found = rows.filter(
    (row) => isOf(row, only) && isOfKind(row, kind) && isFound(row, matcher),
  );
  if (sort === null || !(sort.key in CELLS)) return found;
  return found.toSorted((a, b) =>
    compare(cellOf(a, sort.key, figure), cellOf(b, sort.key, figure), sort.descending),
  );
}
