import { expect, it } from 'vitest';
import { HOME } from './location';
import { createMemory } from './memory';

const table = {
  ...HOME,
  view: 'kernels',
  group: 'launch',
  search: 'gemm',
  sort: { key: 'calls', descending: true },
  options: { unit: 'share' },
};

it('leads back to a view as it was left last, and to nothing of the recording', () => {
  const memory = createMemory();
  memory.remember({ ...table, search: 'conv' });
  memory.remember({ ...table, run: 'a', step: 4, event: 9 });
  memory.remember({ ...HOME, view: 'advice' });
  expect(memory.recall('kernels')).toEqual({
    view: 'kernels',
    group: 'launch',
    search: 'gemm',
    sort: { key: 'calls', descending: true },
    open: null,
    options: { unit: 'share' },
  });
});

it('leads to a view that was not seen yet in its usual state', () => {
  expect(createMemory().recall('kernels')).toEqual({ view: 'kernels' });
});
