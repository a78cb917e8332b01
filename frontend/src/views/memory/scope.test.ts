import { expect, it } from 'vitest';
import { serverSearch, sizeOf } from './scope';

it('parses sizes with units', () => {
  const written = ['4096', '64k', '1.5 MB', '2 GiB', '0', ' 3 b '];
  expect(written.map(sizeOf)).toEqual([4096, 64_000, 1_500_000, 2 * 2 ** 30, 0, 3]);
});

it('rejects invalid sizes', () => {
  expect(sizeOf(' ')).toBeNull();
  expect(['much', '-1', '1 XB', '1.2.3'].map(sizeOf)).toEqual(Array(4).fill(undefined));
});

it('searches on the server for words, quoted texts and conditions on searched columns', () => {
  const searches = ['aten::mm', ' "aten::conv2d (aten::empty)" ', 'module:"Linear_0"', 'op:addmm'];
  expect(searches.map(serverSearch)).toEqual([
    'aten::mm',
    'aten::conv2d (aten::empty)',
    'Linear_0',
    'addmm',
  ]);
});

it('does not search on the server if rows without the text may match', () => {
  const searches = ['', 'two words', '/mm|addmm/', 'bytes:>1MB', 'state:held', 'module:/Linear/'];
  expect(searches.map(serverSearch)).toEqual(Array(6).fill(null));
});
