/** Search text: plain (any case, anywhere), or a regular expression between slashes. */
import { messageOf } from '../core/errors';

export type Matcher =
  | { readonly kind: 'all' }
  | { readonly kind: 'test'; readonly test: (text: string) => boolean }
  | { readonly kind: 'invalid'; readonly message: string };

const REGEX = /^\/(.+)\/([a-z]*)$/s;

/** Limits the time of slow expressions; names are far shorter. */
const LONGEST_TESTED = 4000;

function regexMatcher(source: string, flags: string): Matcher {
  try {
    const expression = new RegExp(source, flags.replaceAll(/[gy]/g, ''));
    return { kind: 'test', test: (text) => expression.test(text.slice(0, LONGEST_TESTED)) };
  } catch (error) {
    const words = messageOf(error);
    // Removes the browser's prefix “Invalid regular expression: /…/: ”.
    return { kind: 'invalid', message: words.split(': ').at(-1) ?? words };
  }
}

export function matcherOf(query: string): Matcher {
  const text = query.trim();
  if (text === '') return { kind: 'all' };
  const parts = REGEX.exec(text);
  if (parts) return regexMatcher(parts[1] ?? '', parts[2] || 'i');
  const lower = text.toLowerCase();
  return { kind: 'test', test: (text) => text.toLowerCase().includes(lower) };
}
