import { type KeyboardEvent, type PointerEvent, type ReactNode, useRef } from 'react';
import type { Column } from '../../api/types.gen';
import { isNumeric } from '../../core/units';
import type { Sort } from '../../state/location';
import { Icon } from '../icon';
import { ariaSort, cycledSort } from './sort_header';

const KEY_STEP_PX = 24;

interface HandleProps {
  readonly column: Column;
  readonly resize: (key: string, px: number | null) => void;
}

const widthAround = (handle: Element): number =>
  handle.closest('th')?.getBoundingClientRect().width ?? 0;

/** Drag to resize a column; double-click resets the width. */
function Handle({ column, resize }: HandleProps): ReactNode {
  const grip = useRef<{ readonly fromPx: number; readonly widthPx: number } | null>(null);
  const move = (event: PointerEvent): void => {
    if (grip.current)
      resize(column.key, grip.current.widthPx + event.clientX - grip.current.fromPx);
  };
  return (
    <span
      className="resize"
      aria-hidden="true"
      title="Drag to resize; double-click for the default width"
      onPointerDown={(event) => {
        if (event.button !== 0) return;
        event.preventDefault();
        event.currentTarget.setPointerCapture(event.pointerId);
        grip.current = { fromPx: event.clientX, widthPx: widthAround(event.currentTarget) };
      }}
      onPointerMove={move}
      onPointerUp={() => {
        grip.current = null;
      }}
      onPointerCancel={() => {
        grip.current = null;
      }}
      onDoubleClick={() => resize(column.key, null)}
    />
  );
}

interface Props {
  readonly columns: readonly Column[];
  readonly sort: Sort;
  readonly onSort: (sort: Sort | null) => void;
  readonly resize: (key: string, px: number | null) => void;
}

const classOf = (columns: readonly Column[], at: number): string =>
  [isNumeric(columns[at]?.unit ?? 'text') && 'number', startsGroup(columns, at) && 'group-start']
    .filter(Boolean)
    .join(' ');

/** Whether a column is the first of its group, or the first after one. */
export const startsGroup = (columns: readonly Column[], at: number): boolean =>
  at > 0 && columns[at]?.group !== columns[at - 1]?.group;

/** The groups above the columns; screen readers read them in the columns' labels. */
function Groups({ columns }: Pick<Props, 'columns'>): ReactNode {
  const starts = columns.flatMap((_, at) => (at === 0 || startsGroup(columns, at) ? [at] : []));
  if (columns.every(({ group }) => group === '')) return null;
  return (
    // biome-ignore lint/a11y/noAriaHiddenOnFocusable: without a tabIndex nothing in this row takes the focus
    <tr className="head-groups" aria-hidden="true">
      {starts.map((start, index) => (
        <th
          key={start}
          colSpan={(starts[index + 1] ?? columns.length) - start}
          className={start > 0 ? 'group-start' : ''}
        >
          {columns[start]?.group}
        </th>
      ))}
    </tr>
  );
}

/** A label without its group, which is above it. */
function Label({ column: { group, label } }: { readonly column: Column }): ReactNode {
  if (group === '' || !label.startsWith(`${group} `)) return <span>{label}</span>;
  const rest = label.slice(group.length + 1);
  return (
    <span>
      <span className="visually-hidden">{group} </span>
      {/^p\d/.test(rest) ? rest : rest.charAt(0).toUpperCase() + rest.slice(1)}
    </span>
  );
}

export function Head({ columns, sort, onSort, resize }: Props): ReactNode {
  const onKeyDown = (event: KeyboardEvent, column: Column): void => {
    const step = { ArrowLeft: -KEY_STEP_PX, ArrowRight: KEY_STEP_PX }[event.key];
    if (!event.altKey || step === undefined) return;
    event.preventDefault(); // the browser's Back
    event.stopPropagation();
    resize(column.key, widthAround(event.currentTarget) + step);
  };
  return (
    <thead>
      <Groups columns={columns} />
      <tr aria-rowindex={1}>
        {columns.map((column, at) => (
          <th
            key={column.key}
            scope="col"
            aria-colindex={at + 1}
            aria-sort={ariaSort(sort, column.key)}
            className={classOf(columns, at)}
            onKeyDown={(event) => onKeyDown(event, column)}
          >
            <button
              type="button"
              title={`${column.help}\nAlt+← and Alt+→ change the width.`}
              onClick={() => onSort(cycledSort(sort, column.key, isNumeric(column.unit)))}
            >
              <Label column={column} />
              <span className="sort-mark">
                <Icon name="down" size={13} />
              </span>
            </button>
            <Handle column={column} resize={resize} />
          </th>
        ))}
      </tr>
    </thead>
  );
}
