import { expect, it } from 'vitest';
import { searchedByServer } from './server_search';

it('is a word, a quoted text, or what a condition on a searched column asks for', () => {
  const searches = ['aten::mm', ' "aten::conv2d (aten::empty)" ', 'module:"Linear_0"', 'op:addmm'];
  expect(searches.map(searchedByServer)).toEqual([
    'aten::mm',
    'aten::conv2d (aten::empty)',
    'Linear_0',
    'addmm',
  ]);
});

it('is nothing where the table may show rows that do not hold the text', () => {
  const searches = ['', 'two words', '/mm|addmm/', 'bytes:>1MB', 'state:held', 'module:/Linear/'];
  expect(searches.map(searchedByServer)).toEqual(Array(6).fill(null));
});
