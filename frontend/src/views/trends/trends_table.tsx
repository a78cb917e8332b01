import type { ReactNode } from 'react';
import type { ExportTable } from '../../core/export';
import { type CellValue, quantity, quantityExact, relativeChange } from '../../core/format';
import { isNumeric } from '../../core/units';
import { type PlainColumn, PlainTable } from '../../widgets/plain_table';

interface Props {
  readonly table: ExportTable;
  /** Whether the rows form one series, and show the change from the previous row. */
  readonly isOneSeries: boolean;
  readonly hovered: number | null;
  /** The row of the shown trace. */
  readonly selected: number | null;
  readonly onHover: (at: number | null) => void;
  readonly onChoose: (at: number) => void;
}

const STEP = 'step_ns';

/** The change of the mean step from the row above. */
function sinceLast(table: ExportTable, at: number): string {
  const index = table.columns.findIndex(({ key }) => key === STEP);
  const [was, now] = [table.rows[at - 1]?.[index], table.rows[at]?.[index]];
  return typeof was === 'number' && typeof now === 'number' ? relativeChange(was, now) : '';
}

/** The values of the charts as a table; the name of a row opens its trace. */
export function TrendsTable(props: Props): ReactNode {
  const { table, hovered, selected, onHover, onChoose } = props;
  const [name, ...others] = table.columns;
  const value = (at: number, index: number): CellValue => table.rows[at]?.[index + 1];
  return (
    <section className="card trends-table" onPointerLeave={() => onHover(null)}>
      <div className="scroll-x">
        <PlainTable
          label="Values of each trace"
          rows={table.rows.map((_, at) => at)}
          keyOf={(at) => at}
          rowProps={(at) => ({
            className: at === hovered ? 'trend-hovered' : '',
            'aria-current': at === selected ? 'true' : undefined,
            onPointerEnter: () => onHover(at),
          })}
          columns={[
            {
              label: <span title={name?.help}>{name?.label}</span>,
              isHeader: true,
              cell: (at) => (
                <button
                  type="button"
                  className="as-link"
                  title="Show this trace"
                  onClick={() => onChoose(at)}
                  onFocus={() => onHover(at)}
                  onBlur={() => onHover(null)}
                >
                  {table.rows[at]?.[0]}
                </button>
              ),
            },
            ...others.map(
              ({ key, label, unit, help }, index): PlainColumn<number> => ({
                label: <span title={help}>{label}</span>,
                isNumber: isNumeric(unit),
                title: (at) => quantityExact(value(at, index), unit),
                cell: (at) => (
                  <span className={value(at, index) ? undefined : 'muted'}>
                    {quantity(value(at, index), unit)}
                    {key === STEP && props.isOneSeries && (
                      <span className="trend-since note">{sinceLast(table, at)}</span>
                    )}
                  </span>
                ),
              }),
            ),
          ]}
        />
      </div>
    </section>
  );
}
