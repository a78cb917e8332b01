import type { ReactNode } from 'react';
import type { Column } from '../../api/types.gen';
import { type CellValue, quantity, quantityExact, relativeChange } from '../../core/format';
import { isNumeric } from '../../core/units';
import type { TrendTable } from './panels';

interface Props {
  readonly table: TrendTable;
  /** Whether rows follow each other: then each is held against the one before it. */
  readonly isOneSeries: boolean;
  readonly hovered: number | null;
  /** The row of the recording that the page shows; null: it is none of these. */
  readonly chosen: number | null;
  readonly onHover: (at: number | null) => void;
  readonly onChoose: (at: number) => void;
}

const STEP = 'step_ns';

/** By how much the mean step differs from the row above. */
function sinceLast(table: TrendTable, at: number): string {
  const place = table.columns.findIndex(({ key }) => key === STEP);
  const [was, now] = [table.rows[at - 1]?.[place], table.rows[at]?.[place]];
  return typeof was === 'number' && typeof now === 'number' ? relativeChange(was, now) : '';
}

interface CellProps {
  readonly column: Column;
  readonly value: CellValue;
  /** Null: rows are not held against each other. */
  readonly since: string | null;
}

function Cell({ column, value, since }: CellProps): ReactNode {
  const { key, unit } = column;
  return (
    <td
      className={`${isNumeric(unit) ? 'number' : ''} ${value === 0 || value === null ? 'muted' : ''}`}
      title={quantityExact(value, unit)}
    >
      {quantity(value, unit)}
      {key === STEP && since !== null && <span className="trend-since">{since}</span>}
    </td>
  );
}

function Row({ at, ...props }: Props & { readonly at: number }): ReactNode {
  const { table, hovered, chosen, onHover, onChoose } = props;
  const [name, ...values] = table.rows[at] ?? [];
  return (
    <tr
      className={at === hovered ? 'trend-hovered' : ''}
      aria-current={at === chosen ? 'true' : undefined}
      onPointerEnter={() => onHover(at)}
    >
      <th scope="row">
        <button
          type="button"
          className="trend-name"
          title="Show this recording"
          onClick={() => onChoose(at)}
          onFocus={() => onHover(at)}
          onBlur={() => onHover(null)}
        >
          {name}
        </button>
      </th>
      {table.columns.slice(1).map((column, place) => (
        <Cell
          key={column.key}
          column={column}
          value={values[place]}
          since={props.isOneSeries ? sinceLast(table, at) : null}
        />
      ))}
    </tr>
  );
}

/** The same figures to read, and to walk through from the keyboard: a row's name opens its recording. */
export function TrendsTable(props: Props): ReactNode {
  const { columns, rows } = props.table;
  return (
    <section className="card trends-table">
      <div className="scroll-x">
        <table className="plain" aria-label="Figures of each recording">
          <thead>
            <tr>
              {columns.map(({ key, label, unit, help }) => (
                <th key={key} scope="col" className={isNumeric(unit) ? 'number' : ''} title={help}>
                  {label}
                </th>
              ))}
            </tr>
          </thead>
          <tbody onPointerLeave={() => props.onHover(null)}>
            {rows.map((_, at) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: a point is its place
              <Row key={at} at={at} {...props} />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
