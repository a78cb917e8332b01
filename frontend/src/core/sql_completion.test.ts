import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type CompletionTable, completionAt, mentionedTables, positionOf } from './sql_completion';

const table = (name: string, ...columns: string[]): CompletionTable => ({
  name,
  title: `Title of ${name}`,
  columns: columns.map((column) => ({ name: column, unit: '', meaning: `${column}.` })),
});
const TABLES = [
  table('kernel_events', 'run', 'name', 'start_ns', 'duration_ns'),
  table('kernels', 'run', 'name', 'call_count', 'total_ns'),
  table('collectives', 'run', '"group"', 'kind'),
  table('steps', 'run', 'number', 'duration_ns'),
];

/** The texts suggested at `|`. */
function at(marked: string, isRequested = false): readonly string[] {
  const caret = marked.indexOf('|');
  const sql = marked.replace('|', '');
  return completionAt(sql, caret, TABLES, isRequested).suggestions.map(({ text }) => text);
}

describe('completion', () => {
  it('suggests tables after FROM and JOIN, also without a prefix', () => {
    expect(at('select * from |')).toEqual(['kernel_events', 'kernels', 'collectives', 'steps']);
    expect(at('select * from kern|')).toEqual(['kernel_events', 'kernels']);
    expect(at('select * from events|')).toEqual(['kernel_events']);
    expect(at('from kernels k JOIN st|')).toEqual(['steps']);
    expect(at('from kernels, st|')).toEqual(['steps']);
    expect(at('summarize |')).toHaveLength(4);
    expect(at('from kernel-e|')).toEqual(['kernel_events']);
    expect(at('from "kernel-e|')).toEqual(['kernel_events']);
  });

  it('suggests columns of the tables that the query names, before tables', () => {
    expect(at('select nu| from steps')).toEqual(['number']);
    expect(at('select ns| from steps')).toEqual(['duration_ns']);
    expect(at('select k| from kernels')).toEqual(['kernel_events', 'kernels']);
    expect(at('from kernels where tot|')).toEqual(['total_ns']);
    expect(at('select tot| from steps')).toEqual([]);
  });

  it('suggests columns of a qualifier: a table or an alias', () => {
    expect(at('select k.| from kernels k')).toEqual(['run', 'name', 'call_count', 'total_ns']);
    expect(at('select s.num| from kernels k join steps as s')).toEqual(['number']);
    expect(at('select steps.du| from steps')).toEqual(['duration_ns']);
    expect(at('select e.st| from "kernel-events" e')).toEqual(['start_ns']);
    expect(at('select x.na| from kernels k')).toEqual([]);
  });

  it('quotes names that need it', () => {
    expect(at('select gro| from collectives')).toEqual(['"group"']);
    const quoted = completionAt('select "gro from collectives', 11, TABLES);
    expect(quoted.from).toBe(7);
  });

  it('suggests nothing in texts and comments, nor without a prefix', () => {
    expect(at("select 'na| from kernels")).toEqual([]);
    expect(at('select 1 -- na|\nfrom kernels')).toEqual([]);
    expect(at('select /* na| */ 1 from kernels')).toEqual([]);
    expect(at("select 'a', na| from kernels")).toEqual(['name']);
    expect(at('select | from kernels')).toEqual([]);
    expect(at('select | from steps', true).slice(0, 3)).toEqual(['run', 'number', 'duration_ns']);
  });

  it('suggests nothing for a name that is typed already', () => {
    expect(at('select number| from steps')).toEqual([]);
    expect(at('from steps|')).toEqual([]);
  });

  it('replaces at most what is before the caret', () => {
    fc.assert(
      fc.property(fc.string(), fc.nat(), (sql, seed) => {
        const caret = sql.length === 0 ? 0 : seed % (sql.length + 1);
        const { from } = completionAt(sql, caret, TABLES, true);
        expect(from).toBeLessThanOrEqual(caret);
        expect(from).toBeGreaterThanOrEqual(0);
      }),
    );
  });
});

it('tables are found by each of their names, once', () => {
  const sql =
    'from Kernels join "kernel-events" using (run) -- steps\nwhere kernels.name = \'steps\'';
  expect(mentionedTables(sql, TABLES).map(({ name }) => name)).toEqual([
    'kernels',
    'kernel_events',
  ]);
});

it('a position has a line and a column', () => {
  expect(positionOf('ab\ncd', 4)).toEqual({ line: 1, column: 1 });
  expect(positionOf('', 0)).toEqual({ line: 0, column: 0 });
});
