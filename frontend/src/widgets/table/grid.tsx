import { useVirtualizer } from '@tanstack/react-virtual';
import { type KeyboardEvent, type ReactNode, useEffect, useMemo, useRef, useState } from 'react';
import type { Column, Table } from '../../api/types.gen';
import { isNumeric } from '../../core/units';
import type { Sort } from '../../state/location';
import { Icon } from '../icon';
import { Cell } from './cell';
import type { ShownTable } from './model';
import { cellOf, shareScale, wholeName } from './rows';

const ROW_PX = 30;

interface Props {
  readonly table: Table;
  readonly shown: ShownTable;
  readonly sort: Sort;
  readonly label: string;
  readonly selected: number | null;
  readonly onSort: (sort: Sort) => void;
  readonly onSelect: (at: number | null) => void;
}

/** A first click puts the largest number first, or the first name. */
function nextSort(sort: Sort, column: Column): Sort {
  if (sort.key !== column.key) return { key: column.key, descending: isNumeric(column.unit) };
  return { key: column.key, descending: !sort.descending };
}

function ariaSort(sort: Sort, column: Column): 'ascending' | 'descending' | 'none' {
  if (sort.key !== column.key) return 'none';
  return sort.descending ? 'descending' : 'ascending';
}

type HeadProps = Pick<Props, 'shown' | 'sort' | 'onSort'>;

function Head({ shown, sort, onSort }: HeadProps): ReactNode {
  return (
    <thead>
      <tr aria-rowindex={1}>
        {shown.columns.map((column) => (
          <th
            key={column.key}
            scope="col"
            aria-sort={ariaSort(sort, column)}
            className={isNumeric(column.unit) ? 'number' : ''}
          >
            <button
              type="button"
              title={column.help}
              onClick={() => onSort(nextSort(sort, column))}
            >
              <span>{column.label}</span>
              <span className="sort-mark">
                <Icon name="down" size={13} />
              </span>
            </button>
          </th>
        ))}
      </tr>
    </thead>
  );
}

const NAME_PX = 230;
const TEXT_PX = 180;
const NUMBER_PX = 88;
/** Digits and the bar beside them. */
const SHARE_PX = 120;
/** A longer label is cut; its tooltip is not. */
const MOST_PX = 190;

/** Room by unit. A name has at least its own, and takes what is left. */
function widthOf(column: Column, at: number): number {
  if (at === 0) return NAME_PX;
  if (!isNumeric(column.unit)) return TEXT_PX;
  const least = column.unit === 'share' ? SHARE_PX : NUMBER_PX;
  return Math.min(MOST_PX, Math.max(least, column.label.length * 6.8 + 34));
}

const STEPS: Readonly<Record<string, number>> = {
  ArrowDown: 1,
  ArrowUp: -1,
  PageDown: 15,
  PageUp: -15,
  Home: Number.NEGATIVE_INFINITY,
  End: Number.POSITIVE_INFINITY,
};

/** Stands for the rows out of sight, so that the scroll bar tells the truth. */
function Spacer({ height }: { readonly height: number }): ReactNode {
  // biome-ignore lint/a11y/noAriaHiddenOnFocusable: without a tabIndex nothing in this empty row takes the focus
  return <tr aria-hidden="true" style={{ height }} />;
}

/** The rows that are in sight, as a real table; the others are known by `aria-rowcount`. */
export function Grid(props: Props): ReactNode {
  const { table, shown, selected, onSelect } = props;
  const { rows, columns } = shown;
  const scroller = useRef<HTMLDivElement>(null);
  const [active, setActive] = useState(0);
  const moved = useRef(false);
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => ROW_PX,
    overscan: 12,
    initialRect: { width: 1200, height: 700 },
  });
  const items = virtual.getVirtualItems();
  const scales = useMemo(
    () => new Map(table.columns.map((column) => [column.key, shareScale(table, column.key)])),
    [table],
  );
  const current = Math.min(active, Math.max(0, rows.length - 1));
  // Scrolled out of sight, the current row is not there to take the focus: the first in sight is.
  const isInSight = items.some((item) => item.index === current);
  const reachable = isInSight ? current : items[0]?.index;

  useEffect(() => {
    if (!moved.current) return;
    moved.current = false;
    virtual.scrollToIndex(current);
    // The row exists once the virtual rows have followed the scroll.
    requestAnimationFrame(() =>
      scroller.current
        ?.querySelector<HTMLElement>(`tr[data-at="${current}"]`)
        ?.focus({ preventScroll: true }),
    );
  }, [current, virtual]);

  const onKeyDown = (event: KeyboardEvent): void => {
    const step = STEPS[event.key];
    const at = rows[current]?.at;
    if (step !== undefined) {
      moved.current = true;
      const next = Math.max(0, Math.min(rows.length - 1, current + step));
      setActive(next);
      const nextRow = rows[next];
      if (selected !== null && nextRow) onSelect(nextRow.at);
    } else if ((event.key === 'Enter' || event.key === ' ') && at !== undefined) onSelect(at);
    else return;
    event.preventDefault();
  };

  const minWidth = columns.reduce((sum, column, at) => sum + widthOf(column, at), 0);
  const above = items[0]?.start ?? 0;
  const below = virtual.getTotalSize() - (items.at(-1)?.end ?? 0);
  return (
    <div className="grid" ref={scroller}>
      <table aria-label={props.label} aria-rowcount={rows.length + 1} style={{ minWidth }}>
        <colgroup>
          {columns.map((column, at) => (
            <col key={column.key} style={at === 0 ? {} : { width: widthOf(column, at) }} />
          ))}
        </colgroup>
        <Head {...props} />
        <tbody onKeyDown={onKeyDown}>
          {above > 0 && <Spacer height={above} />}
          {items.map((item) => {
            const at = rows[item.index]?.at ?? 0;
            return (
              <tr
                key={at}
                data-at={item.index}
                aria-rowindex={item.index + 2}
                aria-selected={at === selected}
                tabIndex={item.index === reachable ? 0 : -1}
                onFocus={() => setActive(item.index)}
                style={{ height: ROW_PX }}
                onClick={() => {
                  setActive(item.index);
                  onSelect(at === selected ? null : at);
                }}
              >
                {columns.map((column, place) => (
                  <Cell
                    key={column.key}
                    column={column}
                    value={cellOf(table, column.key, at)}
                    scale={scales.get(column.key) ?? 0}
                    title={place === 0 ? wholeName(table, at) : undefined}
                  />
                ))}
              </tr>
            );
          })}
          {below > 0 && <Spacer height={below} />}
        </tbody>
      </table>
    </div>
  );
}
