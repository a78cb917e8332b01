import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Column } from '../api/types.gen';
import { fileName, toCsv, toJson, toMarkdown } from './export';

const column = (key: string, unit: Column['unit']): Column => ({
  key,
  label: key,
  unit,
  help: '',
  hidden: false,
  group: '',
});
const columns = [column('name', 'text'), column('total', 'ns'), column('part', 'share')];

describe('CSV', () => {
  it('names units, quotes, and leaves what was not recorded empty', () => {
    const rows = [
      ['a, "b"', 12, 0.5],
      ['line\nbreak', null, null],
    ];
    expect(toCsv({ columns, rows })).toBe(
      'name,total (ns),part (share of 1)\r\n"a, ""b""",12,0.5\r\n"line\nbreak",,\r\n',
    );
  });

  it('keeps spreadsheets from running a text, and numbers as they are', () => {
    const rows = ['=1+1', '+1', '-1', '@x', '\tx', ' =1', '＝1'].map((name) => [name, -5, 0]);
    const lines = toCsv({ columns, rows }).split('\r\n').slice(1, -1);
    expect(lines).toEqual(
      ["'=1+1", "'+1", "'-1", "'@x", "'\tx", "' =1", "'＝1"].map((name) => `${name},-5,0`),
    );
  });

  it('never lets a cell begin like a formula', () => {
    fc.assert(
      fc.property(fc.string(), (name) => {
        const line = toCsv({ columns: [column('name', 'text')], rows: [[name]] }).slice(6);
        expect(line.replace(/^"/, '')).not.toMatch(/^[=+\-@\t]/);
      }),
    );
  });
});

it('JSON says what it is of, with columns and one object a row', () => {
  const text = toJson({ columns, rows: [['x', 1, null]] }, { search: 'x' });
  expect(JSON.parse(text)).toMatchObject({
    search: 'x',
    columns: [{ key: 'name' }, { key: 'total', unit: 'ns' }, { key: 'part' }],
    rows: [{ name: 'x', total: 1, part: null }],
  });
});

describe('Markdown', () => {
  it('shows a text as it is, without links, tags, mentions and tables', () => {
    const name =
      '[x](javascript:a) ![](http://evil.example) <img> @all `code` |\n# *b* \u202e\u001b';
    const [, , row] = toMarkdown({ columns: columns.slice(0, 1), rows: [[name]] }).split('\n');
    expect(row).toBe(
      '| \\[x\\](javascript:a) !\\[\\](http://evil.example) \\<img\\> @<!-- -->all \\`code\\` \\| \\# \\*b\\* \uFFFD\uFFFD |',
    );
  });
});

it('file names hold no folder', () => {
  expect(fileName(['../a b/c', 'worker0', '1'], 'csv')).toBe('a-b-c_worker0_1.csv');
});
