import { expect, it } from 'vitest';
import { isCode, sentence } from './sentence';

it.each([
  ['no device event was recorded', 'No device event was recorded.'],
  ['Done.', 'Done.'],
  ['aten::add was not called', 'aten::add was not called.'],
  ['', ''],
])('%s', (text, written) => {
  expect(sentence(text)).toBe(written);
});

it.each([
  ['torch.profiler.profile(..., with_stack=True)', true],
  ['for batch in DataLoader(...):  # iterate inside the profiled loop', true],
  ['Call prof.step() at the end of each iteration', false],
  ['Begin together (torch.distributed.barrier()).', false],
  ['', false],
])('%s is code: %s', (text, expected) => {
  expect(isCode(text)).toBe(expected);
});
