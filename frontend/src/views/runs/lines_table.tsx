import { useVirtualizer } from '@tanstack/react-virtual';
import { type ReactNode, useRef } from 'react';
import type { Sort } from '../../state/location';
import { Icon } from '../../widgets/icon';
import { ariaSort } from '../../widgets/table/aria_sort';
import { Spacer } from '../../widgets/table/spacer';
import { type LineActions, LineCells } from './line';
import type { Line, SortKey } from './lines';

const LINE_PX = 54;

interface Props {
  readonly lines: readonly Line[];
  readonly sort: Sort;
  readonly actions: LineActions;
  readonly onSort: (sort: Sort) => void;
}

interface HeadCell {
  readonly label: string;
  /** Null if it cannot be sorted by. */
  readonly key: SortKey | null;
  readonly isNumber?: boolean;
}

const HEADS: readonly HeadCell[] = [
  { label: 'Run, worker, file', key: 'name' },
  { label: 'State', key: 'state' },
  { label: 'Size', key: 'size', isNumber: true },
  { label: 'Events', key: 'events', isNumber: true },
  { label: 'Recorded', key: 'recorded' },
  { label: 'Health', key: null },
];
const WIDTHS = [44, null, 'var(--state-width)', 86, 92, 160, 62, 126] as const;

/** Texts sort from A, numbers and times from the largest. */
function nextSort(sort: Sort, key: SortKey): Sort {
  if (sort.key === key) return { key, descending: !sort.descending };
  return { key, descending: key !== 'name' && key !== 'state' };
}

interface CellProps extends Pick<Props, 'sort' | 'onSort'> {
  readonly head: HeadCell;
}

function Cell({ head, sort, onSort }: CellProps): ReactNode {
  const { label, key, isNumber = false } = head;
  if (key === null) {
    return (
      <th scope="col" className="plain-head">
        {label}
      </th>
    );
  }
  return (
    <th scope="col" className={isNumber ? 'number' : ''} aria-sort={ariaSort(sort, key)}>
      <button type="button" onClick={() => onSort(nextSort(sort, key))}>
        <span>{label}</span>
        <span className="sort-mark">
          <Icon name="down" size={13} />
        </span>
      </button>
    </th>
  );
}

const keyOf = (line: Line): string => (line.kind === 'run' ? line.run.id : line.span.trace);

/** A table of the visible lines. */
export function LinesTable({ lines, sort, actions, onSort }: Props): ReactNode {
  const scroller = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: lines.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => LINE_PX,
    overscan: 10,
    initialRect: { width: 1200, height: 700 },
  });
  const items = virtual.getVirtualItems();
  return (
    <div className="grid runs-grid grow" ref={scroller}>
      <table aria-label="Runs and their files" aria-rowcount={lines.length + 1}>
        <colgroup>
          {WIDTHS.map((width, at) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: columns never move
            <col key={at} style={width === null ? {} : { width }} />
          ))}
        </colgroup>
        <thead>
          <tr aria-rowindex={1}>
            <th scope="col">
              <span className="visually-hidden">Compare</span>
            </th>
            {HEADS.map((head) => (
              <Cell key={head.label} head={head} sort={sort} onSort={onSort} />
            ))}
            <th scope="col">
              <span className="visually-hidden">Reading</span>
            </th>
          </tr>
        </thead>
        <tbody>
          <Spacer height={items[0]?.start ?? 0} />
          {items.map(({ index }) => {
            const line = lines[index];
            return (
              line && (
                <tr
                  key={keyOf(line)}
                  aria-rowindex={index + 2}
                  className={`line-${line.kind}`}
                  style={{ height: LINE_PX }}
                >
                  <LineCells line={line} actions={actions} />
                </tr>
              )
            );
          })}
          <Spacer height={virtual.getTotalSize() - (items.at(-1)?.end ?? 0)} />
        </tbody>
      </table>
    </div>
  );
}
