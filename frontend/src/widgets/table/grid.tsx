import {
  type KeyboardEvent,
  type MouseEvent,
  type ReactNode,
  useCallback,
  useEffect,
  useMemo,
  useRef,
  useState,
} from 'react';
import type { Column, Table } from '../../api/types.gen';
import { quantity, quantityExact } from '../../core/format';
import { movedIndex } from '../../core/list_keys';
import { isNumeric } from '../../core/units';
import type { Sort } from '../../state/location';
import { copyWithToast } from '../toast';
import { Cell, type Look } from './cell';
import { CellMenu, type Entry } from './cell_menu';
import { cellText, columnText, conditionText, rowText } from './copying';
import { Head, startsGroup } from './head';
import { cellOf, type Rows, shareScale, sumOf, wholeName } from './rows';
import { useVirtualRows } from './virtual_rows';
import { type ColumnWidths, usualWidth } from './widths';

interface Props {
  readonly table: Table;
  readonly columns: readonly Column[];
  readonly rows: Rows;
  readonly sort: Sort;
  readonly label: string;
  readonly rowPx: number;
  readonly widths: ColumnWidths;
  /** Whether the first column shrinks in a narrow place, rather than that the table scrolls. */
  readonly isFitted?: boolean;
  readonly selected: number | null;
  readonly look?: Look | undefined;
  /** Null: the default order. */
  readonly onSort: (sort: Sort | null) => void;
  readonly onSelect: (at: number | null) => void;
  /** Adds a condition to the search. */
  readonly onNarrow?: (condition: string) => void;
  /** Receives the row under the pointer. */
  readonly onHover?: ((at: number | null) => void) | undefined;
}

/** -1 is the row itself, followed by its cells. */
const SIDEWAYS: Readonly<Record<string, number>> = { ArrowLeft: -1, ArrowRight: 1 };
const ROW = -1;

interface FootProps {
  readonly table: Table;
  readonly columns: readonly Column[];
  readonly rows: Rows;
}

/** Sums over the visible rows, for columns that can be added up. */
function Foot({ table, columns, rows }: FootProps): ReactNode {
  const sums = useMemo(
    () => new Map((table.sums ?? []).map((key) => [key, sumOf(table, key, rows)])),
    [table, rows],
  );
  if (![...sums.values()].some((sum) => sum !== null)) return null;
  return (
    <tfoot>
      <tr aria-rowindex={rows.length + 2}>
        {columns.map((column, at) => {
          const sum = sums.get(column.key) ?? null;
          const text =
            at === 0 ? 'Sum of the rows shown' : sum === null ? '' : quantity(sum, column.unit);
          return (
            <td
              key={column.key}
              className={isNumeric(column.unit) ? 'number' : ''}
              title={sum === null ? undefined : quantityExact(sum, column.unit)}
            >
              {text}
            </td>
          );
        })}
      </tr>
    </tfoot>
  );
}

const copy = (text: string, what: string): void => void copyWithToast(text, `Copied the ${what}`);

interface CellPosition {
  /** Among the visible rows. */
  readonly index: number;
  /** Among the visible columns; -1: the row itself. */
  readonly column: number;
}

interface Opened extends CellPosition {
  readonly at: { readonly x: number; readonly y: number };
}

/** The entries of the menu of a cell. */
function entriesOf(props: Props, { index, column: columnAt }: CellPosition): Entry[] {
  const { table, columns, rows, onNarrow } = props;
  const at = rows[index];
  const column = columns[Math.max(0, columnAt)];
  if (at === undefined || !column) return [];
  const value = columnAt <= 0 ? wholeName(table, at) : cellOf(table, column.key, at);
  const condition = conditionText(column, cellOf(table, column.key, at));
  return [
    { label: 'Copy cell', run: () => copy(cellText(value), 'cell') },
    { label: 'Copy row', run: () => copy(rowText(table, columns, at), 'row') },
    {
      label: `Copy column “${column.label}”`,
      run: () => copy(columnText(table, column, rows), `column, ${rows.length} rows`),
    },
    ...(condition === null || !onNarrow
      ? []
      : [{ label: 'Filter to this value', run: () => onNarrow(condition) }]),
  ];
}

const hasSelectedText = (): boolean => (window.getSelection()?.toString() ?? '') !== '';

/** The position of an event. */
function positionOfEvent(event: { readonly target: EventTarget }): CellPosition | null {
  const target = event.target as Element;
  const row = target.closest('tr[data-at]');
  if (!row) return null;
  const cell = target.closest('td[data-column]');
  return {
    index: Number(row.getAttribute('data-at')),
    column: cell ? Number(cell.getAttribute('data-column')) : ROW,
  };
}

/** The visible rows as a table; `aria-rowcount` has the number of all rows. */
export function Grid(props: Props): ReactNode {
  const { table, columns, rows, selected, onSelect, onHover, rowPx, widths, look } = props;
  const { scroller, indexes, scrollToIndex, body } = useVirtualRows(rows.length, rowPx);
  const [active, setActive] = useState<CellPosition>({ index: 0, column: ROW });
  const [opened, setOpened] = useState<Opened | null>(null);
  const moved = useRef(false);
  const current = Math.min(active.index, Math.max(0, rows.length - 1));
  const columnAt = Math.min(active.column, columns.length - 1);
  // If the active row is out of view, the first visible row can receive the focus.
  const reachable = indexes.includes(current) ? current : indexes[0];

  useEffect(() => {
    if (!moved.current) return;
    moved.current = false;
    scrollToIndex(current);
    // The row exists after the virtual rows have followed the scroll.
    requestAnimationFrame(() => {
      const row = scroller.current?.querySelector<HTMLElement>(`tr[data-at="${current}"]`);
      const cell = row?.querySelector<HTMLElement>(`td[data-column="${columnAt}"]`);
      (cell ?? row)?.focus({ preventScroll: cell === undefined });
    });
  }, [current, columnAt, scroller, scrollToIndex]);

  // Scrolls once to the row that the URL names.
  const named = useRef(selected);
  useEffect(() => {
    if (named.current === null) return;
    const index = rows.indexOf(named.current);
    named.current = null;
    if (index < 0) return;
    setActive({ index, column: ROW });
    scrollToIndex(index, { align: 'center' });
  }, [rows, scrollToIndex]);

  const close = useCallback(() => setOpened(null), []);

  const go = (to: CellPosition): void => {
    moved.current = true;
    setActive(to);
    const next = rows[to.index];
    if (selected !== null && to.index !== current && next !== undefined) onSelect(next);
  };

  const copyHere = (): void => {
    const at = rows[current];
    const entry = entriesOf(props, { index: current, column: columnAt })[columnAt === ROW ? 1 : 0];
    if (at !== undefined) entry?.run();
  };

  const onKeyDown = (event: KeyboardEvent): void => {
    const next = movedIndex(event.key, current, rows.length);
    const sideways = SIDEWAYS[event.key];
    const at = rows[current];
    const isCommand = event.metaKey || event.ctrlKey;
    if (next !== null) go({ index: next, column: columnAt });
    else if (sideways !== undefined && !event.altKey) {
      go({
        index: current,
        column: Math.max(ROW, Math.min(columns.length - 1, columnAt + sideways)),
      });
    } else if ((event.key === 'Enter' || event.key === ' ') && at !== undefined) onSelect(at);
    else if (isCommand && event.key.toLowerCase() === 'c' && !hasSelectedText()) copyHere();
    else return;
    event.preventDefault();
  };

  const onContextMenu = (event: MouseEvent): void => {
    const position = positionOfEvent(event);
    if (!position || event.shiftKey) return; // Shift: the browser's menu
    event.preventDefault();
    const box = (event.target as Element).getBoundingClientRect();
    const isKey = event.clientX === 0 && event.clientY === 0;
    setActive(position);
    setOpened({
      ...position,
      at: isKey ? { x: box.left + 12, y: box.bottom } : { x: event.clientX, y: event.clientY },
    });
  };

  const widthAt = (column: Column, at: number): number =>
    widths.widths[column.key] ?? usualWidth(column, at);
  const minWidth = columns.reduce((sum, column, at) => sum + widthAt(column, at), 0);
  return (
    <div className={rowPx < 26 ? 'grid grow compact' : 'grid grow'} ref={scroller}>
      <table
        // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: arrows go from row to row and from cell to cell
        role="grid"
        aria-label={props.label}
        aria-rowcount={rows.length + 1}
        aria-colcount={columns.length}
        style={props.isFitted ? undefined : { minWidth }}
      >
        <colgroup>
          {columns.map((column, at) => (
            <col
              key={column.key}
              style={
                at === 0 && widths.widths[column.key] === undefined
                  ? {}
                  : { width: widthAt(column, at) }
              }
            />
          ))}
        </colgroup>
        <Head columns={columns} sort={props.sort} onSort={props.onSort} resize={widths.resize} />
        <tbody
          onKeyDown={onKeyDown}
          onContextMenu={onContextMenu}
          onPointerOver={(event) => onHover?.(rows[positionOfEvent(event)?.index ?? -1] ?? null)}
          onPointerLeave={() => onHover?.(null)}
        >
          {body((index) => {
            const at = rows[index] ?? 0;
            return (
              <tr
                key={at}
                data-at={index}
                aria-rowindex={index + 2}
                aria-selected={at === selected}
                className={look?.rowClass?.(at)}
                tabIndex={index === reachable ? 0 : -1}
                onFocus={(event) => {
                  if (event.target === event.currentTarget)
                    setActive({ index: index, column: ROW });
                }}
                style={{ height: rowPx }}
                onClick={() => {
                  if (hasSelectedText()) return; // text was selected
                  setActive({ index: index, column: ROW });
                  onSelect(at === selected ? null : at);
                }}
              >
                {columns.map((column, column_at) => (
                  <Cell
                    key={column.key}
                    column={column}
                    index={column_at}
                    value={cellOf(table, column.key, at)}
                    scale={column.unit === 'share' ? shareScale(table, column.key) : 0}
                    isActive={index === current && column_at === columnAt}
                    startsGroup={startsGroup(columns, column_at)}
                    title={column_at === 0 ? wholeName(table, at) : undefined}
                    look={look?.cell?.(column, at)}
                  />
                ))}
              </tr>
            );
          })}
        </tbody>
        <Foot table={table} columns={columns} rows={rows} />
      </table>
      {opened && <CellMenu at={opened.at} entries={entriesOf(props, opened)} close={close} />}
    </div>
  );
}
