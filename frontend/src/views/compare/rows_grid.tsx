import { type KeyboardEvent, type ReactNode, useMemo } from 'react';
import type { Change, Column } from '../../api/types.gen';
import { change, quantity, quantityExact, relativeChange } from '../../core/format';
import { shortName } from '../../core/names';
import { isNumeric } from '../../core/units';
import type { Sort } from '../../state/location';
import { cycledSort, SortHeader } from '../../widgets/table/sort_header';
import { useVirtualRows } from '../../widgets/table/virtual_rows';
import { deltaOf } from './phrases';
import { type AnyRow, cellOf, changeOf, type Figure, isNoiseRow, shapesOf } from './rows';

const ROW_PX = 30;
const WIDTHS: Readonly<Record<string, number>> = {
  name: 270,
  status: 108,
  where: 76,
  delta: 150,
  place: 160,
  matched_by: 196,
};
const NUMBER_PX = 92;

const widthOf = ({ key }: Column): number => WIDTHS[key] ?? NUMBER_PX;

interface Props {
  readonly label: string;
  readonly rows: readonly AnyRow[];
  readonly columns: readonly Column[];
  readonly figure: Figure;
  /** Null: the order of the comparison. */
  readonly sort: Sort | null;
  readonly selected: AnyRow | null;
  readonly onSort: (sort: Sort | null) => void;
  readonly onSelect: (row: AnyRow | null) => void;
}

const relative = ({ before, after }: Change): string => relativeChange(before, after);

/** The text of a cell. */
function textOf(row: AnyRow, { key, unit }: Column, figure: Figure): string {
  const value = cellOf(row, key, figure);
  if (key === 'relative') return relative(changeOf(row, figure));
  if (key === 'delta' && typeof value === 'number') return change(value, unit);
  return key === 'name' ? shortName(String(value)) : quantity(value, unit);
}

/** More time is worse, less is better; insignificant changes are neutral. */
function toneOf(row: AnyRow, key: string, figure: Figure): string {
  if (key !== 'delta' && key !== 'relative') return '';
  const tones: Readonly<Record<string, string>> = { more: 'tone-worse', less: 'tone-better' };
  return tones[changeOf(row, figure).verdict] ?? '';
}

function classOf(row: AnyRow, column: Column, figure: Figure): string {
  if (column.key === 'status') return `row-status status-${row.status}`;
  if (column.unit === 'code') return 'mono';
  return isNumeric(column.unit) ? `number ${toneOf(row, column.key, figure)}` : '';
}

interface BarProps {
  readonly of: Change;
  /** The largest difference of all rows: a full bar. */
  readonly scale: number;
}

/** A bar to the right for more, to the left for less. */
function DeltaBar({ of, scale }: BarProps): ReactNode {
  const share = scale > 0 ? (of.after - of.before) / scale : 0;
  return (
    <span className="delta-bar" aria-hidden="true">
      <span
        style={{ left: `${50 + Math.min(0, share) * 50}%`, width: `${Math.abs(share) * 50}%` }}
      />
    </span>
  );
}

interface RowProps extends Pick<Props, 'columns' | 'figure' | 'onSelect'> {
  readonly row: AnyRow;
  readonly at: number;
  readonly isSelected: boolean;
  readonly scale: number;
}

function GridRow({ row, at, isSelected, scale, columns, figure, onSelect }: RowProps): ReactNode {
  const toggle = (): void => onSelect(isSelected ? null : row);
  const onKeyDown = (event: KeyboardEvent<HTMLElement>): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === 'Enter' || event.key === ' ') toggle();
    else if (step !== undefined) {
      event.currentTarget.parentElement
        ?.querySelector<HTMLElement>(`tr[data-at="${at + step}"]`)
        ?.focus();
    } else return;
    event.preventDefault();
  };
  return (
    <tr
      data-at={at}
      aria-rowindex={at + 2}
      aria-selected={isSelected}
      className={isNoiseRow(row) ? 'row-noise' : ''}
      tabIndex={0}
      style={{ height: ROW_PX }}
      onClick={toggle}
      onKeyDown={onKeyDown}
    >
      {columns.map((column) => (
        <td
          key={column.key}
          className={classOf(row, column, figure)}
          title={quantityExact(cellOf(row, column.key, figure), column.unit)}
        >
          {column.key === 'delta' && <DeltaBar of={changeOf(row, figure)} scale={scale} />}
          <span className="cell-text">{textOf(row, column, figure)}</span>
          {column.key === 'name' && <span className="row-shapes">{shapesOf(row)}</span>}
        </td>
      ))}
    </tr>
  );
}

function Head({ columns, sort, onSort }: Pick<Props, 'columns' | 'sort' | 'onSort'>): ReactNode {
  return (
    <thead>
      <tr aria-rowindex={1}>
        {columns.map(({ key, label, help, unit }) => (
          <SortHeader
            key={key}
            sortKey={key}
            label={label}
            title={help}
            isNumber={isNumeric(unit)}
            sort={sort}
            onClick={() => onSort(cycledSort(sort, key, isNumeric(unit)))}
          />
        ))}
      </tr>
    </thead>
  );
}

/** A table of the visible rows. */
export function RowsGrid(props: Props): ReactNode {
  const { label, rows, columns, figure, selected, onSelect } = props;
  const { scroller, body } = useVirtualRows(rows.length, ROW_PX);
  const scale = useMemo(
    () => rows.reduce((most, row) => Math.max(most, Math.abs(deltaOf(changeOf(row, figure)))), 0),
    [rows, figure],
  );
  const minWidth = columns.reduce((sum, column) => sum + widthOf(column), 0);
  return (
    <div className="grid compare-grid grow" ref={scroller}>
      <table aria-label={label} aria-rowcount={rows.length + 1} style={{ minWidth }}>
        <colgroup>
          {columns.map((column, at) => (
            <col key={column.key} style={at === 0 ? {} : { width: widthOf(column) }} />
          ))}
        </colgroup>
        <Head {...props} />
        <tbody>
          {body((index) => {
            const row = rows[index];
            return (
              row && (
                <GridRow
                  key={index}
                  row={row}
                  at={index}
                  isSelected={row === selected}
                  scale={scale}
                  columns={columns}
                  figure={figure}
                  onSelect={onSelect}
                />
              )
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
