import { expect, it } from 'vitest';
import { blocksOf, piecesOf } from './blocks';

it('headings, paragraphs, lists, code and tables are told apart', () => {
  const text = `# name

**What is bad.**

| | |
|---|---|
| Category | input |

## How
over two
lines
- one
- two

\`\`\`python
# no heading

x = [1]
\`\`\`
| option | default |
|---|---:|
| \`a\\|b\` | 0.5 |
`;
  expect(blocksOf(text)).toEqual([
    { kind: 'heading', level: 1, text: 'name' },
    { kind: 'paragraph', text: '**What is bad.**' },
    { kind: 'table', head: ['', ''], rows: [['Category', 'input']] },
    { kind: 'heading', level: 2, text: 'How' },
    { kind: 'paragraph', text: 'over two lines' },
    { kind: 'list', items: ['one', 'two'] },
    { kind: 'code', language: 'python', code: '# no heading\n\nx = [1]' },
    { kind: 'table', head: ['option', 'default'], rows: [['`a|b`', '0.5']] },
  ]);
});

it('an empty cell keeps its place', () => {
  expect(blocksOf('| a | b | c |\n|---|---|---|\n| 1 |  | 3 |')).toEqual([
    { kind: 'table', head: ['a', 'b', 'c'], rows: [['1', '', '3']] },
  ]);
});

it('what is no block of ours is text, and every text ends', () => {
  expect(blocksOf('')).toEqual([]);
  expect(blocksOf('| no table |')).toEqual([{ kind: 'paragraph', text: '| no table |' }]);
  expect(blocksOf('```\nnever closed')).toEqual([
    { kind: 'code', language: '', code: 'never closed' },
  ]);
  expect(blocksOf('-\n#\n<b>bold</b>')).toEqual([{ kind: 'paragraph', text: '- # <b>bold</b>' }]);
});

it('code, strong words and addresses are set apart within a line', () => {
  expect(piecesOf('Set `pin_memory`: **now**, see <https://a.b/c> or [all](https://d.e).')).toEqual(
    [
      { kind: 'text', text: 'Set ' },
      { kind: 'code', text: 'pin_memory' },
      { kind: 'text', text: ': ' },
      { kind: 'strong', text: 'now' },
      { kind: 'text', text: ', see ' },
      { kind: 'link', text: 'a.b/c', address: 'https://a.b/c' },
      { kind: 'text', text: ' or ' },
      { kind: 'link', text: 'all', address: 'https://d.e' },
      { kind: 'text', text: '.' },
    ],
  );
});

it('what leads nowhere from here is text, above all what would run', () => {
  expect(piecesOf('[All values](../accuracy.md)')).toEqual([
    { kind: 'text', text: 'All values (accuracy.md)' },
  ]);
  expect(piecesOf('[x](javascript:alert)')).toEqual([
    { kind: 'text', text: 'x (javascript:alert)' },
  ]);
  expect(piecesOf('<javascript:alert> __init__ 2*3*4')).toEqual([
    { kind: 'text', text: '<javascript:alert> __init__ 2*3*4' },
  ]);
});
