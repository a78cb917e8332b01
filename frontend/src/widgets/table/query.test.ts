import { describe, expect, it } from 'vitest';
import type { Column, Table } from '../../api/types.gen';
import { exampleOf, queryOf, serverText } from './query';
import { missesOf, orderedRows, shownRows } from './rows';

const column = (key: string, label: string, unit: Column['unit']): Column => ({
  key,
  label,
  unit,
  help: '',
  hidden: false,
  group: '',
});

const table: Table = {
  schema: 1,
  columns: [
    column('name', 'Name', 'text'),
    column('input_dims', 'Input shapes', 'code'),
    column('streams', 'Stream', 'text'),
    column('call_count', 'Calls', 'count'),
    column('mean_ns', 'Mean', 'ns'),
    column('kernel_share', 'Share', 'share'),
    column('event', 'Event', 'text'),
  ],
  row_count: 4,
  values: {
    name: ['aten::mm', 'aten::conv2d', 'nccl:all_reduce', 'void at gemm'],
    input_dims: ['[[8,8]]', '[[4096,8]]', null, null],
    streams: ['7', '7, 20', '20', '27'],
    call_count: [1, 20, 300, null],
    mean_ns: [500, 2_000_000, 1_000_000, 3],
    kernel_share: [0.5, 0.04, 0.2, 0.26],
    event: [4096, 12, 7, 3],
  },
  sort: 'mean_ns',
  groups: [],
  group: '',
  total_ns: 0,
  empty: '',
  all_row_count: null,
  match_count: null,
  sums: [],
  title: '',
  meaning: '',
};

const found = (search: string): number[] => {
  const query = queryOf(table, search);
  expect(query.kind).toBe('rows');
  return [...shownRows(orderedRows(table, '', true), missesOf(table, query))];
};

describe('a search', () => {
  it.each([
    ['', [0, 1, 2, 3]],
    ['aten', [0, 1]],
    ['  ATEN::mm ', [0]],
    ['void at', [3]],
    ['nccl:all', [2]],
    ['/conv|gemm/', [1, 3]],
    ['4096', [1]],
    ['shape:4096', [1]],
    ['shape:/^\\[\\[8/', [0]],
    ['name:4096', []],
    ['event:4096', [0]],
    ['event:<10', [2, 3]],
    ['stream:7', [0, 1]],
    ['Stream:20 name:nccl', [2]],
    ['input-shapes:8', [0, 1]],
    ['calls:>1', [1, 2]],
    ['calls:20', [1]],
    ['mean:>=1ms', [1, 2]],
    ['mean:<1us aten', [0]],
    ['share:>20%', [0, 3]],
    ['name:"void at"', [3]],
    ['name:"void at" stream:7', []],
    ['share:<=0.2 /reduce|conv/', [1, 2]],
  ])('%j finds %j', (search, rows) => {
    expect(found(search)).toEqual(rows);
  });

  it.each([
    ['/(/', 'Not a regular expression'],
    ['cat:gemm', 'No column cat'],
    ['calls:many', 'Calls is a number'],
    ['calls:>3ms', 'not measured in ms'],
    ['name:/(/', 'Not a regular expression'],
  ])('%j is told to be wrong', (search, words) => {
    const query = queryOf(table, search);
    expect(query).toMatchObject({ kind: 'invalid', message: expect.stringContaining(words) });
  });

  it('is shown by an example of a column that the table has', () => {
    const without = (key: string): Table => ({
      ...table,
      columns: table.columns.filter((column) => column.key !== key),
    });
    expect(exampleOf(table)).toBe('calls:>10');
    expect(exampleOf(without('call_count'))).toBe('mean:>1ms');
    expect(exampleOf({ ...table, columns: table.columns.slice(0, 2) })).toBeUndefined();
    expect(queryOf(table, exampleOf(table) ?? '').kind).toBe('rows');
  });

  it.each([
    ['gemm', 'gemm'],
    ['void at', 'void at'],
    ['name:gemm calls:>1', 'gemm'],
    ['name:"void at"', 'void at'],
    ['calls:>1 gemm', 'gemm'],
    ['calls:>1', null],
    ['/gemm|conv/', null],
    ['/gemm/ name:conv', 'conv'],
    ['', null],
  ])('%j has a text that the server searches', (search, text) => {
    expect(serverText(table, search)).toBe(text);
  });
});
