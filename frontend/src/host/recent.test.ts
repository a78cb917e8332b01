import { expect, it } from 'vitest';
import { addRecent, readRecent, withLatest } from './recent';

it('keeps the latest first, each once, and few of them', () => {
  addRecent('runs', 'a');
  addRecent('runs', 'b');
  addRecent('runs', 'a');
  expect(readRecent('runs')).toEqual(['a', 'b']);
  expect(readRecent('others')).toEqual([]);
  const many = Array.from({ length: 50 }, (_, at) => String(at));
  expect(withLatest(many, 'new')).toHaveLength(20);
});

it('reads what is no list as none', () => {
  localStorage.setItem('stepscope.runs', '{"a":1}');
  expect(readRecent('runs')).toEqual([]);
  localStorage.setItem('stepscope.runs', '[1,"a"');
  expect(readRecent('runs')).toEqual([]);
});
