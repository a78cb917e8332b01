import type { ReactNode } from 'react';
import type { Sort } from '../../state/location';
import { SortHeader, toggledSort } from '../../widgets/table/sort_header';
import { useVirtualRows } from '../../widgets/table/virtual_rows';
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

interface CellProps extends Pick<Props, 'sort' | 'onSort'> {
  readonly head: HeadCell;
}

function Cell({ head: { label, key, isNumber }, sort, onSort }: CellProps): ReactNode {
  if (key === null) {
    return (
      <th scope="col" className="plain-head">
        {label}
      </th>
    );
  }
  const isText = key === 'name' || key === 'state';
  const onClick = (): void => onSort(toggledSort(sort, key, !isText));
  return <SortHeader sortKey={key} {...{ label, isNumber, sort, onClick }} />;
}

const keyOf = (line: Line): string => (line.kind === 'run' ? line.run.id : line.span.trace);

/** A table of the visible lines. */
export function LinesTable({ lines, sort, actions, onSort }: Props): ReactNode {
  const { scroller, body } = useVirtualRows(lines.length, LINE_PX);
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
          {body((index) => {
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
        </tbody>
      </table>
    </div>
  );
}
