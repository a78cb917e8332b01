import { expect, it } from 'vitest';
import { visible } from './excerpt';

it('writes out what nobody would see, and stays in one line', () => {
  expect(visible('{\n    "name": "a\u0007b",\r\n\t"x": 1')).toBe('{ "name": "a\\u{07}b", "x": 1');
  expect(visible('abc\u202Edef\u200B')).toBe('abc\\u{202e}def\\u{200b}');
  expect(visible('half \uD800 a pair')).toBe('half \\u{d800} a pair');
  expect(visible('“ünder” \\xadd')).toBe('“ünder” \\xadd');
});
