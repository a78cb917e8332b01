import { expect, it } from 'vitest';
import { shellWord } from './shell_word';

it('is quoted where a shell would read more than a word', () => {
  expect(['/log/my_run', 'a b', "it's", '$(id)'].map(shellWord)).toEqual([
    '/log/my_run',
    "'a b'",
    "'it'\\''s'",
    "'$(id)'",
  ]);
});
