import { expect, it } from 'vitest';
import { sentence } from './sentence';

it.each([
  ['no device event was recorded', 'No device event was recorded.'],
  ['Done.', 'Done.'],
  ['aten::add was not called', 'aten::add was not called.'],
  ['', ''],
])('%s', (text, written) => {
  expect(sentence(text)).toBe(written);
});
