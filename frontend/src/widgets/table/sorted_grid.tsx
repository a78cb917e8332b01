import type { ReactNode } from 'react';
import type { Table } from '../../api/types.gen';
import type { Sort } from '../../state/location';
import type { Look } from './cell';
import { Grid } from './grid';
import { orderedRows, type Rows } from './rows';
import { useColumnWidths } from './widths';
import './table.css';

/** The smallest target. */
const ROW_PX = 24;

interface Props {
  readonly table: Table;
  /** For the stored widths of its columns. */
  readonly name: string;
  readonly label: string;
  readonly sort: Sort;
  /** By default all rows in that order. */
  readonly rows?: Rows;
  readonly look?: Look;
  readonly selected?: number | null;
  /** Whether the columns shrink in a narrow place (the default), rather than that the table scrolls. */
  readonly isFitted?: boolean;
  readonly onSort: (sort: Sort | null) => void;
  readonly onSelect?: (at: number | null) => void;
  readonly onHover?: (at: number | null) => void;
}

/** The columns of a table that are not hidden, without search and settings. */
export function SortedGrid(props: Props): ReactNode {
  const { table, name, sort, rows, selected = null, onSelect = () => undefined } = props;
  const { isFitted = true } = props;
  return (
    <Grid
      {...props}
      columns={table.columns.filter((column) => !column.hidden)}
      rows={rows ?? orderedRows(table, sort.key, sort.descending)}
      rowPx={ROW_PX}
      widths={useColumnWidths(name)}
      isFitted={isFitted}
      selected={selected}
      onSelect={onSelect}
    />
  );
}
