/** TanStack Table over the API's columns: order and visibility. */
import {
  columnVisibilityFeature,
  createSortedRowModel,
  rowSortingFeature,
  tableFeatures,
  useTable,
} from '@tanstack/react-table';
import { useMemo } from 'react';
import type { Column, Table } from '../../api/types.gen';
import type { Sort } from '../../state/location';
import { cellOf, compareCells, type RowIndex } from './rows';

const features = tableFeatures({
  columnVisibilityFeature,
  rowSortingFeature,
  sortedRowModel: createSortedRowModel(),
});

export interface ShownTable {
  readonly columns: readonly Column[];
  readonly rows: readonly RowIndex[];
}

interface Options {
  readonly table: Table;
  readonly rows: RowIndex[];
  readonly sort: Sort;
  readonly shown: Record<string, boolean>;
}

/** The rows in order and the columns that are shown. */
export function useTableModel({ table, rows, sort, shown }: Options): ShownTable {
  const columns = useMemo(
    () =>
      table.columns.map((column) => ({
        id: column.key,
        // Undefined, so that rows without the value come last whichever way the rest is sorted.
        accessorFn: (row: RowIndex) => cellOf(table, column.key, row.at) ?? undefined,
        sortUndefined: 'last' as const,
        sortFn: (
          a: { getValue: (id: string) => unknown },
          b: { getValue: (id: string) => unknown },
          id: string,
        ) => compareCells(a.getValue(id) as never, b.getValue(id) as never),
      })),
    [table],
  );
  const model = useTable({
    features,
    columns,
    data: rows,
    getRowId: (row: RowIndex) => String(row.at),
    enableSortingRemoval: false,
    state: {
      sorting: [{ id: sort.key, desc: sort.descending }],
      columnVisibility: shown,
    },
  });
  return {
    columns: table.columns.filter((column) => shown[column.key]),
    rows: model.getRowModel().rows.map((row) => row.original),
  };
}
