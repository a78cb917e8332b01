import type { HTMLAttributes, ReactNode } from 'react';

export interface PlainColumn<Row> {
  readonly label: ReactNode;
  readonly isNumber?: boolean;
  /** Whether its cells name their rows. */
  readonly isHeader?: boolean;
  readonly className?: string;
  readonly title?: (row: Row) => string | undefined;
  readonly cell: (row: Row, index: number) => ReactNode;
}

interface Props<Row> {
  readonly columns: readonly PlainColumn<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row, index: number) => string | number;
  /** Read to screen readers only. */
  readonly caption?: string;
  readonly label?: string;
  readonly className?: string;
  /** A row below the others. */
  readonly total?: Row;
  readonly rowProps?: (row: Row) => HTMLAttributes<HTMLTableRowElement>;
}

/** A short table without sorting or search; `DataTable` has both. */
export function PlainTable<Row>(props: Props<Row>): ReactNode {
  const { columns, rows, keyOf, caption, label, className = 'plain', total, rowProps } = props;
  const classOf = ({ isNumber, className: other }: PlainColumn<Row>): string | undefined =>
    [isNumber && 'number', other].filter(Boolean).join(' ') || undefined;
  const line = (row: Row, index: number): ReactNode => (
    <tr key={keyOf(row, index)} {...rowProps?.(row)}>
      {columns.map((column, at) => {
        const Cell = column.isHeader ? 'th' : 'td';
        return (
          <Cell
            // biome-ignore lint/suspicious/noArrayIndexKey: columns never move
            key={at}
            scope={column.isHeader ? 'row' : undefined}
            className={classOf(column)}
            title={column.title?.(row)}
          >
            {column.cell(row, index)}
          </Cell>
        );
      })}
    </tr>
  );
  return (
    <table className={className} aria-label={label}>
      {caption !== undefined && <caption className="visually-hidden">{caption}</caption>}
      <thead>
        <tr>
          {columns.map((column, at) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: columns never move
            <th key={at} scope="col" className={column.isNumber ? 'number' : undefined}>
              {column.label}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>{rows.map(line)}</tbody>
      {total !== undefined && <tfoot>{line(total, rows.length)}</tfoot>}
    </table>
  );
}
