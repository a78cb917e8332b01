import { type ReactNode, useCallback, useDeferredValue, useMemo } from 'react';
import type { Column } from '../../api/types.gen';
import type { ExportTable } from '../../core/export';
import { count } from '../../core/format';
import { matcherOf } from '../../core/search';
import { useNavigation } from '../../state/navigation';
import { useOption, withOption } from '../../state/option';
import { ExportMenu } from '../../widgets/export_menu';
import { Icon } from '../../widgets/icon';
import { saveTable } from '../../widgets/save_table';
import { type Segment, Segmented } from '../../widgets/segmented';
import { RowCount, SearchBox } from '../../widgets/table/toolbar';
import { RowDrawer } from './row_drawer';
import {
  type AnyRow,
  cellOf,
  columnsOf,
  type Figure,
  isOf,
  isOnDevice,
  type Only,
  rowKey,
  shownColumns,
  shownRows,
} from './rows';
import { RowsGrid } from './rows_grid';
import { nameOf, type Side } from './sides';
import '../../widgets/table/table.css';

interface Props {
  readonly rows: readonly AnyRow[];
  /** The id of the tab, for the names of exports. */
  readonly name: 'operators' | 'device' | 'modules';
  readonly label: string;
  readonly before: Side;
  readonly after: Side;
  /** The text without rows. */
  readonly none: string;
}

const ONLY: readonly (readonly [Only, string, string])[] = [
  ['changed', 'Changed', 'Statistically significant changes'],
  ['slower', 'Slower', 'Significantly more time'],
  ['faster', 'Faster', 'Significantly less time'],
  ['added', 'New', 'Only after'],
  ['gone', 'Gone', 'Only before'],
  ['all', 'All', 'Insignificant changes are grey'],
];
const IDS = ONLY.map(([id]) => id);

function segmentsOf(rows: readonly AnyRow[]): Segment<Only>[] {
  return ONLY.map(([id, label, title]) => {
    const size = rows.filter((row) => isOf(row, id)).length;
    return { id, label: `${label} ${count(size)}`, title, isDisabled: size === 0 };
  });
}

const SELF: readonly Segment<Figure>[] = [
  { id: 'either', label: 'Time', title: 'Device time if there is any, else host time' },
  { id: 'device', label: 'Device', title: 'Device time per step, excluding callees' },
  { id: 'host', label: 'Host', title: 'Host time per step, excluding callees' },
];
const TOTALS: readonly Segment<Figure>[] = [
  {
    id: 'device-total',
    label: 'Device total',
    title: 'Device time per step, including callees: nested calls count in both',
  },
  {
    id: 'host-total',
    label: 'Host total',
    title: 'Host time per step, including callees: nested calls count in both',
  },
];

/** The selectable times; device work has only one. */
function figuresOf(rows: readonly AnyRow[], name: Props['name']): readonly Segment<Figure>[] {
  if (name === 'device') return [];
  const all = [...SELF, ...(name === 'operators' ? TOTALS : [])];
  const onHost = all.filter(({ id }) => id === 'host' || id === 'host-total');
  return isOnDevice(rows) ? all : onHost;
}

const KINDS: Readonly<Record<string, string>> = {
  kernel: 'kernels',
  copy: 'copies',
  'memory-set': 'memory sets',
};

interface ChipProps {
  readonly kind: string;
  readonly onClear: () => void;
}

/** The kind that the table is filtered to; a click removes the filter. */
function KindChip({ kind, onClear }: ChipProps): ReactNode {
  const text = KINDS[kind] ?? kind;
  return (
    <button type="button" className="button tag" onClick={onClear} title={`Show more than ${text}`}>
      only {text} <Icon name="close" size={13} />
    </button>
  );
}

function exportOf(
  rows: readonly AnyRow[],
  columns: readonly Column[],
  figure: Figure,
): ExportTable {
  return {
    columns,
    rows: rows.map((row) => columns.map(({ key }) => cellOf(row, key, figure))),
  };
}

function markdownOf({ columns, rows }: ExportTable): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  const text = (cell: unknown): string => String(cell ?? '').replaceAll('|', '\\|');
  return [
    line(columns.map(({ label, unit }) => (unit === 'ns' ? `${label} (ns)` : label))),
    line(columns.map(() => '---')),
    ...rows.map((row) => line(row.map(text))),
  ].join('\n');
}

/** The changed rows with search, filters and export. */
export function RowsTable({ rows, name, label, before, after, none }: Props): ReactNode {
  const { location, go } = useNavigation();
  const { options, sort } = location;
  const defaultOnly: Only = rows.some((row) => isOf(row, 'changed')) ? 'changed' : 'all';
  const [only, chooseOnly] = useOption<Only>('only', defaultOnly, IDS);
  const figures = figuresOf(rows, name);
  const [figure, chooseFigure] = useOption<Figure>(
    'figure',
    figures[0]?.id ?? 'either',
    figures.map(({ id }) => id),
  );
  const kind = name === 'device' ? (options.kind ?? null) : null;
  const search = useDeferredValue(location.search);
  const matcher = useMemo(() => matcherOf(search), [search]);
  const shown = useMemo(
    () => shownRows(rows, { only, kind, figure, matcher, sort }),
    [rows, only, kind, figure, matcher, sort],
  );
  const columns = useMemo(() => columnsOf(rows, figure), [rows, figure]);
  const selected = useMemo(
    () => (options.row && rows.find((row) => rowKey(row) === options.row)) || null,
    [rows, options.row],
  );
  const select = (row: AnyRow | null): void =>
    go({ options: withOption(options, 'row', row && rowKey(row)) }, 'replace');
  const onSearch = useCallback((text: string) => go({ search: text }, 'replace'), [go]);
  if (rows.length === 0) return <p className="muted rows-none">{none}</p>;
  const save = (format: 'csv' | 'json'): void => {
    const about = { before: nameOf(before), after: nameOf(after), table: name, figure, only };
    const table = exportOf(shown, columns, figure);
    const file = ['compare', nameOf(before), nameOf(after), name];
    saveTable({ name: file, format, table, about: { ...about, search } });
  };
  return (
    <div className="rows-table">
      <div className="bar wrap">
        <SearchBox
          hasConditions={false}
          value={location.search}
          onChange={onSearch}
          invalid={matcher.kind === 'invalid' ? matcher.message : null}
        />
        <Segmented label="Rows" segments={segmentsOf(rows)} value={only} onChoose={chooseOnly} />
        {figures.length > 1 && (
          <Segmented label="Time" segments={figures} value={figure} onChoose={chooseFigure} />
        )}
        {kind !== null && (
          <KindChip
            kind={kind}
            onClear={() => go({ options: withOption(options, 'kind', null) }, 'replace')}
          />
        )}
        <RowCount shown={shown.length} all={rows.length} />
        <span className="space" />
        <ExportMenu
          note="The shown rows with all columns, in full precision."
          onExport={save}
          markdown={() => markdownOf(exportOf(shown, shownColumns(columns), figure))}
        />
      </div>
      <div className="rows-body">
        <RowsGrid
          label={label}
          rows={shown}
          columns={shownColumns(columns)}
          figure={figure}
          sort={sort}
          selected={selected}
          onSort={(next) => go({ sort: next }, 'replace')}
          onSelect={select}
        />
        {shown.length === 0 && <p className="rows-none muted">No row matches.</p>}
        {selected && (
          <RowDrawer row={selected} before={before} after={after} close={() => select(null)} />
        )}
      </div>
    </div>
  );
}
