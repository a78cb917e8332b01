import { expect, it } from 'vitest';
import { sizeOf } from './sizes';

it('reads sizes as people write them', () => {
  const written = ['4096', '64k', '1.5 MB', '2 GiB', '0', ' 3 b '];
  expect(written.map(sizeOf)).toEqual([4096, 64_000, 1_500_000, 2 * 2 ** 30, 0, 3]);
});

it('tells nothing from nonsense', () => {
  expect(sizeOf(' ')).toBeNull();
  expect(['much', '-1', '1 XB', '1.2.3'].map(sizeOf)).toEqual(Array(4).fill(undefined));
});
