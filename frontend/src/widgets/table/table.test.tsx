import { screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { describe, expect, it, vi } from 'vitest';
import { type Rendered, renderInPage } from '../../../tests/render';
import type { Column, Table } from '../../api/types.gen';
import { matcherOf } from '../../core/search';
import * as files from '../../host/download';
import type { Patch } from '../../state/navigation';
import { DataTable } from '.';
import { compareCells, matchingRows, shareScale } from './rows';

const column = (key: string, unit: Column['unit'], hidden = false): Column => ({
  key,
  label: key,
  unit,
  help: `About ${key}`,
  hidden,
});

const table: Table = {
  schema: 1,
  columns: [
    column('name', 'text'),
    column('calls', 'count'),
    column('total', 'ns'),
    column('part', 'share'),
    column('extra', 'count', true),
  ],
  row_count: 4,
  values: {
    name: ['aten::add', '=cmd()', 'aten::conv2d', 'aten::mul'],
    calls: [10, 2, 30, 4],
    total: [5000, null, 90_000, 700],
    part: [0.05, null, 0.9, 0.01],
    extra: [1, 2, 3, 4],
  },
  sort: 'total',
  groups: ['name', 'shape'],
  group: 'name',
  total_ns: 100_000,
  empty: '',
};

const show = (start: Patch = {}): Rendered =>
  renderInPage(
    <DataTable
      table={table}
      name="operators"
      label="Operators"
      recording={['run', 'w', '1']}
      isStale={false}
    />,
    start,
  );

const names = (): (string | null | undefined)[] =>
  screen
    .getAllByRole('row')
    .slice(1)
    .map((row) => row.querySelector('td')?.textContent);

describe('order', () => {
  it('starts with the table’s own, and what was not recorded is last', () => {
    show();
    expect(names()).toEqual(['aten::conv2d', 'aten::add', 'aten::mul', '=cmd()']);
  });

  it('keeps what was not recorded last the other way round too', () => {
    show({ sort: { key: 'total', descending: false } });
    expect(names()).toEqual(['aten::mul', 'aten::add', 'aten::conv2d', '=cmd()']);
  });

  it('is chosen by the header, told to screen readers, and kept in the URL', async () => {
    const { store } = show();
    await userEvent.click(screen.getByRole('button', { name: 'calls' }));
    expect(store.current().sort).toEqual({ key: 'calls', descending: true });
    expect(names()).toEqual(['aten::conv2d', 'aten::add', 'aten::mul', '=cmd()']);
    await userEvent.click(screen.getByRole('button', { name: 'calls' }));
    const header = screen.getByRole('columnheader', { name: 'calls' });
    expect(header.getAttribute('aria-sort')).toBe('ascending');
    expect(names()[0]).toBe('=cmd()');
  });

  it('passes over a column that the table does not have', () => {
    show({ sort: { key: 'gone', descending: false } });
    expect(names()[0]).toBe('aten::conv2d');
  });

  it('sets numbers in names by their value', () => {
    expect(['k10', 'k9', 'K1'].sort(compareCells)).toEqual(['K1', 'k9', 'k10']);
  });
});

describe('search', () => {
  it('comes from the URL', () => {
    show({ search: '/^aten::(add|mul)$/' });
    expect(names()).toEqual(['aten::add', 'aten::mul']);
    expect(screen.getByText('2 of 4 rows')).toBeTruthy();
  });

  it('goes into the URL once typing rests', async () => {
    const { store } = show();
    await userEvent.type(screen.getByRole('searchbox'), 'CONV');
    await waitFor(() => expect(store.current().search).toBe('CONV'));
    await waitFor(() => expect(names()).toEqual(['aten::conv2d']));
  });

  it('says what is wrong with an expression, and hides nothing', () => {
    show({ search: '/(/' });
    expect(screen.getByRole('alert').textContent).toContain('Not a regular expression');
    expect(names()).toHaveLength(4);
  });

  it('says so where nothing matches, and is cleared', async () => {
    const { store } = show({ search: 'nothing' });
    await userEvent.click(screen.getByRole('button', { name: 'Clear the search' }));
    expect(store.current().search).toBe('');
  });

  it('looks into texts only', () => {
    expect(matchingRows(table, matcherOf('90000'))).toEqual([]);
  });
});

describe('grouping and columns', () => {
  it('asks for another grouping through the URL', async () => {
    const { store } = show();
    await userEvent.click(screen.getByRole('radio', { name: 'Name + shape' }));
    expect(store.current().group).toBe('shape');
  });

  it('shows a column on demand, and remembers it', async () => {
    const { unmount } = show();
    expect(screen.queryByRole('columnheader', { name: 'extra' })).toBeNull();
    await userEvent.click(screen.getByLabelText('extra'));
    expect(screen.getByRole('columnheader', { name: 'extra' })).toBeTruthy();
    unmount();
    show();
    expect(screen.getByRole('columnheader', { name: 'extra' })).toBeTruthy();
  });

  it('survives a choice that something else has written', () => {
    localStorage.setItem('stepscope.columns.operators', '{"calls": "no"}');
    show();
    expect(screen.getByRole('columnheader', { name: 'calls' })).toBeTruthy();
  });

  it('draws parts of a whole against the largest, and others against all of one', () => {
    expect(shareScale(table, 'part')).toBe(0.9);
    const occupancies = { ...table, values: { ...table.values, part: [0.5, 0.5, 0.5, 0.1] } };
    expect(shareScale(occupancies, 'part')).toBe(1);
  });
});

describe('details', () => {
  it('open with a click, hold every value with every digit, and close with Escape', async () => {
    show();
    await userEvent.click(screen.getByText('aten::conv2d'));
    const drawer = screen.getByRole('complementary', { name: 'Details' });
    expect(within(drawer).getByText('90,000 ns')).toBeTruthy();
    expect(within(drawer).getByText('extra')).toBeTruthy();
    await userEvent.keyboard('{Escape}');
    expect(screen.queryByRole('complementary')).toBeNull();
  });

  it('open from the keyboard', async () => {
    show();
    const row = screen.getAllByRole('row')[1] as HTMLElement;
    row.focus();
    await userEvent.keyboard('{ArrowDown}{Enter}');
    const drawer = screen.getByRole('complementary');
    expect(within(drawer).getByText('aten::add')).toBeTruthy();
  });
});

describe('export', () => {
  it('holds the rows and columns that are shown, escaped, in full precision', async () => {
    const saved = vi.spyOn(files, 'download').mockImplementation(() => undefined);
    show({ search: '/=|conv/' });
    await userEvent.click(screen.getByRole('button', { name: 'CSV' }));
    expect(saved).toHaveBeenCalledWith(
      'run_w_1_operators.csv',
      'text/csv',
      "name,calls,total (ns),part (share of 1)\r\naten::conv2d,30,90000,0.9\r\n'=cmd(),2,,\r\n",
    );
    await userEvent.click(screen.getByRole('button', { name: 'JSON' }));
    const [name, type, text] = saved.mock.lastCall ?? [];
    expect([name, type]).toEqual(['run_w_1_operators.json', 'application/json']);
    expect(JSON.parse(text ?? '')).toMatchObject({ search: '/=|conv/', rows: [{ calls: 30 }, {}] });
  });
});
