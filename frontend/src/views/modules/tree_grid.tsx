import { type KeyboardEvent, type ReactNode, useEffect, useRef, useState } from 'react';
import type { Column, Modules } from '../../api/types.gen';
import { quantity, quantityExact, share } from '../../core/format';
import { isNumeric } from '../../core/units';
import type { Sort } from '../../state/location';
import { Icon } from '../../widgets/icon';
import { cellOf } from '../../widgets/table/rows';
import { cycledSort, SortHeader } from '../../widgets/table/sort_header';
import { useVirtualRows } from '../../widgets/table/virtual_rows';
import { usualWidth } from '../../widgets/table/widths';
import type { Tree } from './tree';

const NAME_PX = 280;
const SHARE_PX = 116;
const INDENT_PX = 16;
const MOST_INDENT = 16;
const PAGE = 15;
/** Width of the sort mark. */
const SORT_PX = 14;

interface Props {
  readonly table: Modules;
  readonly tree: Tree;
  /** All but the first, which is the module. */
  readonly columns: readonly Column[];
  readonly rows: readonly number[];
  readonly rowPx: number;
  readonly sort: Sort | null;
  readonly selected: number | null;
  readonly hits: ReadonlySet<number> | null;
  /** The fraction of the measure of the icicle, and its name. */
  readonly shareOf: (at: number) => number;
  readonly shareLabel: string;
  /** The heading of its column: `Of GPU time`. */
  readonly shareName: string;
  readonly isOpen: (at: number) => boolean;
  readonly onTurn: (at: number, opens: boolean, deep: boolean) => void;
  readonly onSort: (sort: Sort | null) => void;
  readonly onSelect: (at: number | null) => void;
}

function NameCell({ props, at }: { readonly props: Props; readonly at: number }): ReactNode {
  const { table, tree, hits } = props;
  const depth = tree.depth[at] ?? 0;
  const hasChildren = (tree.children[at]?.length ?? 0) > 0;
  const open = props.isOpen(at);
  const name = String(cellOf(table, 'module', at));
  return (
    <td title={table.path[at]}>
      <span
        className={hits && !hits.has(at) ? 'tree-name flex dim' : 'tree-name flex'}
        style={{ paddingLeft: Math.min(depth, MOST_INDENT) * INDENT_PX }}
      >
        {hasChildren ? (
          <button
            type="button"
            className={open ? 'tree-turn open' : 'tree-turn'}
            aria-label={open ? `Close ${name}` : `Open ${name}`}
            tabIndex={-1}
            onClick={(event) => {
              event.stopPropagation();
              props.onTurn(at, !open, event.shiftKey);
            }}
          >
            <Icon name="chevron" size={13} />
          </button>
        ) : (
          <span className="tree-turn" />
        )}
        {name}
      </span>
    </td>
  );
}

function ShareCell({ value }: { readonly value: number }): ReactNode {
  return (
    <td className="number" title={quantityExact(value, 'share')}>
      <span className="share-bar" aria-hidden="true">
        <span style={{ width: `${Math.max(0, Math.min(1, value)) * 100}%` }} />
      </span>
      <span className="cell-text">{share(value)}</span>
    </td>
  );
}

const MOVES: Readonly<Record<string, number>> = {
  ArrowDown: 1,
  ArrowUp: -1,
  PageDown: PAGE,
  PageUp: -PAGE,
  Home: Number.NEGATIVE_INFINITY,
  End: Number.POSITIVE_INFINITY,
};

/** The modules as a tree in a table of the visible rows. */
export function TreeGrid(props: Props): ReactNode {
  const { table, tree, columns, rows, rowPx, selected, sort, onSort, onSelect } = props;
  const { scroller, indexes, scrollToIndex, body } = useVirtualRows(rows.length, rowPx);
  const [active, setActive] = useState(0);
  const moved = useRef(false);
  const selectedIndex = selected === null ? -1 : rows.indexOf(selected);
  useEffect(() => {
    if (selectedIndex >= 0 && !moved.current) scrollToIndex(selectedIndex);
  }, [selectedIndex, scrollToIndex]);
  const current = Math.min(active, Math.max(0, rows.length - 1));
  const focusable = indexes.includes(current) ? current : indexes[0];
  useEffect(() => {
    if (!moved.current) return;
    moved.current = false;
    scrollToIndex(current);
    requestAnimationFrame(() =>
      scroller.current
        ?.querySelector<HTMLElement>(`tr[data-at="${current}"]`)
        ?.focus({ preventScroll: true }),
    );
  }, [current, scrollToIndex, scroller]);

  const go = (to: number): void => {
    moved.current = true;
    const next = Math.max(0, Math.min(rows.length - 1, to));
    setActive(next);
    const at = rows[next];
    if (selected !== null && at !== undefined) onSelect(at);
  };
  const sideways = (at: number, opens: boolean, deep: boolean): void => {
    const hasChildren = (tree.children[at]?.length ?? 0) > 0;
    if (hasChildren && (deep || props.isOpen(at) !== opens)) props.onTurn(at, opens, deep);
    else if (opens && hasChildren) go(current + 1);
    else if (!opens) go(rows.indexOf(tree.parent[at] ?? at));
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const at = rows[current];
    const move = MOVES[event.key];
    if (at === undefined) return;
    if (move !== undefined) go(current + move);
    else if (event.key === 'ArrowRight') sideways(at, true, event.shiftKey);
    else if (event.key === 'ArrowLeft') sideways(at, false, event.shiftKey);
    else if (event.key === 'Enter' || event.key === ' ') onSelect(at);
    else return;
    event.preventDefault();
  };
  const widths = columns.map((column, at) => usualWidth(column, at + 1) + SORT_PX);
  const minWidth = NAME_PX + SHARE_PX + widths.reduce((sum, width) => sum + width, 0);
  const header = ({ key, label, help, unit }: Column): ReactNode => (
    <SortHeader
      key={key}
      sortKey={key}
      label={label}
      title={help}
      isNumber={isNumeric(unit)}
      sort={sort}
      onClick={() => onSort(cycledSort(sort, key, true))}
    />
  );
  return (
    <div
      className={rowPx < 26 ? 'grid grow compact tree-grid' : 'grid grow tree-grid'}
      ref={scroller}
    >
      <table
        // biome-ignore lint/a11y/noNoninteractiveElementToInteractiveRole: rows open and close
        role="treegrid"
        aria-label="Modules"
        aria-rowcount={rows.length + 1}
        style={{ minWidth }}
      >
        <colgroup>
          <col />
          <col style={{ width: SHARE_PX }} />
          {columns.map((column, at) => (
            <col key={column.key} style={{ width: widths[at] }} />
          ))}
        </colgroup>
        <thead>
          <tr aria-rowindex={1}>
            {header(table.columns[0] as Column)}
            <th scope="col" className="number tree-share" title={props.shareLabel}>
              {props.shareName}
            </th>
            {columns.map(header)}
          </tr>
        </thead>
        <tbody onKeyDown={onKeyDown}>
          {body((index) => {
            const at = rows[index] ?? 0;
            const hasChildren = (tree.children[at]?.length ?? 0) > 0;
            return (
              <tr
                key={at}
                data-at={index}
                aria-rowindex={index + 2}
                aria-level={(tree.depth[at] ?? 0) + 1}
                aria-expanded={hasChildren ? props.isOpen(at) : undefined}
                aria-selected={at === selected}
                tabIndex={index === focusable ? 0 : -1}
                onFocus={() => setActive(index)}
                style={{ height: rowPx }}
                onClick={() => {
                  setActive(index);
                  onSelect(at === selected ? null : at);
                }}
              >
                <NameCell props={props} at={at} />
                <ShareCell value={props.shareOf(at)} />
                {columns.map((column) => {
                  const value = cellOf(table, column.key, at);
                  return (
                    <td
                      key={column.key}
                      className={isNumeric(column.unit) ? 'number' : ''}
                      title={quantityExact(value, column.unit)}
                    >
                      <span className={value === null ? 'muted' : 'cell-text'}>
                        {quantity(value, column.unit)}
                      </span>
                    </td>
                  );
                })}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}
