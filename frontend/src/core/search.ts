/** The search box: plain text (any case, anywhere), or a regular expression between slashes. */

export type Matcher =
  | { readonly kind: 'all' }
  | { readonly kind: 'test'; readonly test: (text: string) => boolean }
  | { readonly kind: 'invalid'; readonly message: string };

const REGEX = /^\/(.+)\/([a-z]*)$/s;

/** Long texts make a careless expression slow; names are far shorter. */
const LONGEST_TESTED = 4000;

function regexMatcher(source: string, flags: string): Matcher {
  try {
    const expression = new RegExp(source, flags.replaceAll(/[gy]/g, ''));
    return { kind: 'test', test: (text) => expression.test(text.slice(0, LONGEST_TESTED)) };
  } catch (error) {
    const words = error instanceof Error ? error.message : String(error);
    // Browsers begin with “Invalid regular expression: /…/: ”, which the page says already.
    return { kind: 'invalid', message: words.split(': ').at(-1) ?? words };
  }
}

export function matcherOf(query: string): Matcher {
  const wanted = query.trim();
  if (wanted === '') return { kind: 'all' };
  const parts = REGEX.exec(wanted);
  if (parts) return regexMatcher(parts[1] ?? '', parts[2] || 'i');
  const lower = wanted.toLowerCase();
  return { kind: 'test', test: (text) => text.toLowerCase().includes(lower) };
}
