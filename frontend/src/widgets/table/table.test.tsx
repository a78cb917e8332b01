import { fireEvent, screen, waitFor, within } from '@testing-library/react';
import userEvent from '@testing-library/user-event';
import { describe, expect, it, vi } from 'vitest';
import { type Rendered, renderInPage } from '../../../tests/render';
import type { Column, Table } from '../../api/types.gen';
import * as clipboard from '../../host/clipboard';
import * as files from '../../host/download';
import type { Patch } from '../../state/navigation';
import { DataTable } from '.';
import { queryOf } from './query';
import { missesOf, orderedRows, shareScale, shownRows } from './rows';
import { largestOf } from './shares';
import { naturalKey } from './sorting';

const column = (key: string, unit: Column['unit'], hidden = false): Column => ({
  key,
  label: key,
  unit,
  help: `About ${key}`,
  hidden,
  group: '',
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
  all_row_count: null,
  match_count: null,
  sums: ['calls', 'total'],
  title: '',
  meaning: '',
};

const show = (start: Patch = {}): Rendered =>
  renderInPage(
    <DataTable
      table={table}
      name="operators"
      label="Operators"
      traceName={['run', 'w', '1']}
      isStale={false}
    />,
    start,
  );

const bodyRows = (): HTMLElement[] =>
  screen.getAllByRole('row').filter((row) => row.hasAttribute('data-at'));

const names = (): (string | null | undefined)[] =>
  bodyRows().map((row) => row.querySelector('td')?.textContent);

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
    const values = ['k10', 'k9', 'K1'];
    const keys = values.map(naturalKey);
    expect(keys.toSorted()).toEqual([keys[2], keys[1], keys[0]]);
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
    const misses = missesOf(table, queryOf(table, '90000'));
    expect([...shownRows(orderedRows(table, '', true), misses)]).toEqual([]);
  });
});

describe('grouping and columns', () => {
  it('asks for another grouping through the URL', async () => {
    const { store } = show();
    await userEvent.click(screen.getByRole('radio', { name: 'Shape' }));
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
    const row = bodyRows()[0] as HTMLElement;
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

describe('a row', () => {
  it('that is chosen is kept in the URL by what is in it, and found again', async () => {
    const { store, unmount } = show();
    await userEvent.click(screen.getByText('aten::conv2d'));
    const { row } = store.current().options;
    expect(row).toMatch(/^[0-9a-z]+$/);
    unmount();
    show({ options: { row: row ?? '' }, sort: { key: 'name', descending: false } });
    const drawer = screen.getByRole('complementary', { name: 'Details' });
    expect(within(drawer).getByText('aten::conv2d')).toBeTruthy();
    await userEvent.click(screen.getByRole('button', { name: 'Close details' }));
    expect(screen.queryByRole('complementary')).toBeNull();
  });

  it('is reached cell by cell, and a cell or the row is copied', async () => {
    const copied = vi.spyOn(clipboard, 'copyText').mockResolvedValue(true);
    show();
    bodyRows()[0]?.focus();
    await userEvent.keyboard('{Control>}c{/Control}');
    expect(copied).toHaveBeenLastCalledWith(
      'name\tcalls\ttotal (ns)\tpart (share of 1)\naten::conv2d\t30\t90000\t0.9',
    );
    await userEvent.keyboard('{ArrowRight}{ArrowRight}');
    await userEvent.keyboard('{Control>}c{/Control}');
    expect(copied).toHaveBeenLastCalledWith('30');
    await userEvent.keyboard('{ArrowDown}');
    await userEvent.keyboard('{Control>}c{/Control}');
    expect(copied).toHaveBeenLastCalledWith('10');
  });

  it('has a menu that copies its column, and keeps the rows like it', async () => {
    const copied = vi.spyOn(clipboard, 'copyText').mockResolvedValue(true);
    const { store } = show();
    const cell = screen.getByText('aten::add');
    fireEvent.contextMenu(cell, { clientX: 10, clientY: 10 });
    await userEvent.click(screen.getByRole('menuitem', { name: 'Copy column “name”' }));
    expect(copied).toHaveBeenLastCalledWith(
      ['name', 'aten::conv2d', 'aten::add', 'aten::mul', '=cmd()'].join('\n'),
    );
    fireEvent.contextMenu(cell, { clientX: 10, clientY: 10 });
    await userEvent.click(screen.getByRole('menuitem', { name: 'Filter to this value' }));
    expect(store.current().search).toBe('name:"aten::add"');
    await waitFor(() => expect(names()).toEqual(['aten::add']));
  });

  it('has a menu that gives the keyboard back when it is closed', async () => {
    show();
    const [first] = bodyRows();
    first?.focus();
    fireEvent.contextMenu(screen.getByText('aten::conv2d'), { clientX: 10, clientY: 10 });
    expect(document.activeElement?.textContent).toBe('Copy cell');
    await userEvent.keyboard('{Escape}');
    expect(screen.queryByRole('menu')).toBeNull();
    expect(document.activeElement).toBe(first);
  });
});

describe('the sum', () => {
  const sums = (): (string | null)[] =>
    [...document.querySelectorAll('tfoot td')].map((cell) => cell.textContent);

  it('is of the rows that are shown, of what can be added up', () => {
    show({ search: 'aten' });
    expect(sums()).toEqual(['Sum of the rows shown', '44', '95.7 µs', '']);
  });

  it('is not there where nothing can be added up', () => {
    renderInPage(
      <DataTable
        table={{ ...table, sums: [] }}
        name="x"
        label="X"
        traceName={[]}
        isStale={false}
      />,
    );
    expect(document.querySelector('tfoot')).toBeNull();
  });
});

describe('columns', () => {
  it('are made wider from the keyboard, which the browser keeps until the usual is asked for', async () => {
    const { unmount } = show();
    const width = (): string | undefined =>
      [...document.querySelectorAll('col')].map((col) => (col as HTMLElement).style.width)[1];
    const usual = width();
    screen.getByRole('button', { name: 'calls' }).focus();
    await userEvent.keyboard('{Alt>}{ArrowRight}{/Alt}');
    const wider = width();
    expect(wider).not.toBe(usual);
    unmount();
    show();
    expect(width()).toBe(wider);
    await userEvent.click(screen.getByRole('button', { name: 'Default columns and widths' }));
    expect(width()).toBe(usual);
  });

  it('stand in low rows where these were chosen', async () => {
    show();
    await userEvent.click(screen.getByLabelText(/Compact rows/));
    expect(document.querySelector('.grid')?.classList.contains('compact')).toBe(true);
    expect(localStorage.getItem('stepscope.density')).toBe('compact');
  });
});

describe('a table of which only the first rows were sent', () => {
  const says = (patch: Partial<Table>, search = ''): string | null | undefined => {
    const { unmount } = renderInPage(
      <DataTable
        table={{ ...table, all_row_count: 12_345, ...patch }}
        name="x"
        label="X"
        traceName={[]}
        isStale={false}
      />,
      { search },
    );
    const words = document.querySelector('.row-count')?.textContent;
    unmount();
    return words;
  };

  it('says how many there are', () => {
    expect(says({})).toBe('4 of 12,345 rows, the first in this order');
  });

  it('says whether the search covers all of them', () => {
    expect(says({}, 'conv')).toBe('1 of 12,345 rows: only the first 4 in this order are searched');
    expect(says({ match_count: 4 }, 'aten')).toBe('3 of 12,345 rows');
    expect(says({ match_count: 900 }, 'aten')).toBe('3 of 12,345 rows: the first of 900 matches');
  });

  it('keeps its search where nothing matches', () => {
    const none = { row_count: 0, values: {}, match_count: 0 };
    expect(says(none, 'nowhere')).toBe('0 of 12,345 rows');
  });
});

describe('shares of the rows', () => {
  it('are of the largest, whichever way rows are sorted', () => {
    const rows = orderedRows(table, 'name', false);
    const parts = largestOf(table, 'total', rows, 2).map(({ at, value }) => [at, value]);
    expect(parts).toEqual([
      [2, 90_000],
      [0, 5000],
    ]);
  });
});

describe('groups of columns', () => {
  const [name, calls, total, ...others] = table.columns;
  if (!name || !calls || !total) throw new Error('the table has these columns');
  const grouped: Table = {
    ...table,
    columns: [
      name,
      calls,
      { ...total, key: 'total', label: 'GPU total', group: 'GPU' },
      ...others.map((other) => ({ ...other, label: `Host ${other.key}`, group: 'Host' })),
    ],
  };

  it('are above them, and in their names for screen readers', () => {
    renderInPage(
      <DataTable table={grouped} name="g" label="G" traceName={['run']} isStale={false} />,
    );
    const head = document.querySelector('.head-groups');
    const groups = [...(head?.querySelectorAll('th') ?? [])].map((cell) => cell.textContent);
    expect(groups).toEqual(['', 'GPU', 'Host']);
    expect(head?.getAttribute('aria-hidden')).toBe('true');
    expect(screen.getByRole('columnheader', { name: /^GPU Total/ })).toBeTruthy();
    expect(screen.getByRole('columnheader', { name: /^Host Part/ })).toBeTruthy();
  });

  it('are not there without groups', () => {
    show();
    expect(document.querySelector('.head-groups')).toBeNull();
  });
});
