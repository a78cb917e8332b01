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
  expect(memory.recall('kernels', HOME)).toEqual({
    view: 'kernels',
    group: 'launch',
    search: 'gemm',
    sort: { key: 'calls', descending: true },
    open: null,
    options: { unit: 'share' },
  });
});

it('leads to a view that was not seen yet in its usual state', () => {
  expect(createMemory().recall('kernels', HOME)).toEqual({ view: 'kernels' });
});

it('leads back to a timeline with what was pinned in it, and in another recording without', () => {
  const memory = createMemory();
  const options = { pin: '3', at: '5-9', kinds: 'stream' };
  memory.remember({ ...HOME, view: 'timeline', run: 'a', worker: 'w', options });
  expect(memory.recall('timeline', { run: 'a', worker: 'w', span: null }).options).toEqual(options);
  expect(memory.recall('timeline', { run: 'a', worker: 'v', span: null }).options).toEqual({
    kinds: 'stream',
  });
});
