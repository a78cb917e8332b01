/** Glob patterns as Python's `fnmatchcase` has them: `*`, `?`, `[…]`, `[!…]`. Pure. */

type Test = (letter: string) => boolean;
type Token = '*' | Test;

/** The pattern that matches this name only. */
export const exactly = (name: string): string => name.replaceAll(/[[*?]/g, '[$&]');

/** The name that a pattern matches, if it matches one only; else the pattern. */
export function readable(pattern: string): string {
  const name = pattern.replaceAll(/\[([[*?])\]/g, '$1');
  return exactly(name) === pattern ? name : pattern;
}

export const hasWildcards = (text: string): boolean => /[*?]|\[.+\]/.test(text);

/** A typed text as a pattern: a part of a name, unless it has wildcards. */
export const asPattern = (text: string): string =>
  hasWildcards(text) ? text : `*${exactly(text)}*`;

function classTest(members: string): Test {
  const isNegated = members.startsWith('!');
  const listed = [...(isNegated ? members.slice(1) : members)];
  const ranges: (readonly [string, string])[] = [];
  while (listed.length > 0) {
    const first = listed.shift() as string;
    const isRange = listed[0] === '-' && listed.length > 1;
    ranges.push([first, isRange ? (listed.splice(0, 2)[1] as string) : first]);
  }
  return (letter) => ranges.some(([from, to]) => from <= letter && letter <= to) !== isNegated;
}

function tokensOf(pattern: string): readonly Token[] {
  // A bracket that is first in a class is a member of it; one without an end is a plain letter.
  const parts = pattern.match(/\*+|\[!?\]?[^\]]*\]|[\s\S]/gu) ?? [];
  return parts.map((part): Token => {
    if (part.startsWith('*')) return '*';
    if (part === '?') return () => true;
    if (part.length > 2 && part.startsWith('[')) return classTest(part.slice(1, -1));
    return (letter) => letter === part;
  });
}

/** Whether names match a pattern, in time proportional to both lengths at most. */
export function globMatcher(pattern: string): (name: string) => boolean {
  const tokens = tokensOf(pattern);
  return (name) => {
    const letters = [...name];
    let at = 0;
    let token = 0;
    let star = -1;
    let tried = 0;
    while (at < letters.length) {
      const test = tokens[token];
      if (test === '*') {
        star = token;
        tried = at;
        token += 1;
      } else if (test?.(letters[at] as string)) {
        at += 1;
        token += 1;
      } else if (star >= 0) {
        tried += 1;
        at = tried;
        token = star + 1;
      } else return false;
    }
    return tokens.slice(token).every((rest) => rest === '*');
  };
}
