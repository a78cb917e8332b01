import { screen, within } from '@testing-library/react';
import { describe, expect, it } from 'vitest';
import { renderInPage } from '../../../tests/render';
import type { Table } from '../../api/types.gen';
import { quantity } from '../../core/format';
import { DataTable } from '../../widgets/table';
import { wholeName } from '../../widgets/table/rows';
import fixture from './fixture.json';

const table = fixture as unknown as Table;

const shown = (value: Table): void => {
  renderInPage(
    <DataTable table={value} name="kernels" label="Kernels" recording={['run']} isStale={false} />,
  );
};

describe('the kernels of a recorded run', () => {
  it('come largest first by the table’s own order', () => {
    shown(table);
    const column = table.columns.find((each) => each.key === table.sort);
    const values = (table.values[table.sort] as (number | null)[])
      .map((value, at) => ({ value, at }))
      .sort((a, b) => (b.value ?? -1) - (a.value ?? -1));
    const first = screen.getAllByRole('row')[1] as HTMLElement;
    const top = values[0];
    if (!top || !column) throw new Error('the fixture has rows and the column it is sorted by');
    expect(within(first).getByTitle(wholeName(table, top.at))).toBeTruthy();
    expect(first.textContent).toContain(quantity(top.value, column.unit));
    expect(screen.getByRole('columnheader', { name: column.label }).ariaSort ?? 'descending').toBe(
      'descending',
    );
  });

  it('show every column that is not off by default', () => {
    shown(table);
    const headers = screen.getAllByRole('columnheader').map((header) => header.textContent);
    const wanted = table.columns.filter((column) => !column.hidden).map((column) => column.label);
    expect(headers).toEqual(wanted);
  });

  it('say why where there are none', () => {
    shown({ ...table, row_count: 0, values: {}, empty: 'Nothing ran on a device.' });
    expect(screen.getByText('Nothing ran on a device.')).toBeTruthy();
    expect(screen.queryByRole('table')).toBeNull();
  });
});
