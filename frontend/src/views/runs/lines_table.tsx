import type { ReactNode } from 'react';
import type { Sort } from '../../state/location';
import { SortHeader, toggledSort } from '../../widgets/table/sort_header';
import { useVirtualRows } from '../../widgets/table/virtual_rows';
import { RUN_COLUMNS } from './columns';
import { type LineActions, LineCells } from './line';
import type { Line } from './lines';

const LINE_PX = 54;

interface Props {
  readonly lines: readonly Line[];
  readonly sort: Sort;
  readonly actions: LineActions;
  /** The run that the other views show. */
  readonly current: string;
  readonly onSort: (sort: Sort) => void;
}

function keyOf(line: Line): string {
  if (line.kind === 'folder') return `folder ${line.folder}`;
  return line.kind === 'run' ? line.run.id : line.span.trace;
}

const classOf = (line: Line, current: string): string =>
  line.kind === 'run' && line.run.id === current ? 'line-run line-current' : `line-${line.kind}`;

/** A table of the visible lines. */
export function LinesTable({ lines, sort, actions, current, onSort }: Props): ReactNode {
  const { scroller, body } = useVirtualRows(lines.length, LINE_PX);
  return (
    <div className="grid runs-grid grow" ref={scroller}>
      <table aria-label="Runs and their files" aria-rowcount={lines.length + 1}>
        <colgroup>
          <col className="run-choose" />
          {RUN_COLUMNS.map(({ key, width }) => (
            <col key={key} className={`run-${key}`} style={width === null ? {} : { width }} />
          ))}
        </colgroup>
        <thead>
          <tr aria-rowindex={1}>
            <th scope="col" className="run-choose">
              <span className="visually-hidden">Compare</span>
            </th>
            {RUN_COLUMNS.map(({ key, label, help, isNumber = false }) => (
              <SortHeader
                key={key}
                sortKey={key}
                title={help}
                className={`run-${key}`}
                onClick={() => onSort(toggledSort(sort, key, key !== 'name'))}
                {...{ label, isNumber, sort }}
              />
            ))}
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
                  className={classOf(line, current)}
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
