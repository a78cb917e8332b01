/** The code of a fix as a diff, where its comments state the code that it replaces. Pure. */

const COMMENT = /^(\s*)(.*?)\s*#\s*(?:instead of|in place of|not):?\s+(.+)$/;
const KEYWORDS = /\b(?:and|else|for|if|in|is|lambda|not|or)\b/g;
/** Words in sequence, which only prose has. */
const PROSE = /[A-Za-z_]\s+[A-Za-z_]/;

const isCode = (text: string): boolean =>
  /^[\w.[(]/.test(text) && /[.()[\]=]|^\w+$/.test(text) && !PROSE.test(text.replace(KEYWORDS, ','));

interface Replacement {
  readonly before: string;
  /** Empty if the comment is a line of its own. */
  readonly after: string;
}

/** `x = new(y)  # instead of old(y): a reason` as its code before and after; null for other lines. */
function replacementOf(line: string): Replacement | null {
  const [, indent = '', code = '', comment = ''] = COMMENT.exec(line) ?? [];
  const [former = '', reason] = comment.split(/: (?=[a-z])/);
  if (former === '' || !isCode(former)) return null;
  const note = reason === undefined ? '' : `  # ${reason}`;
  const [target = ''] = /^\w+ = /.exec(code) ?? [];
  const isValue = /[([]/.test(former) && !/\s[-+*/]?=\s/.test(former);
  return {
    before: indent + (isValue ? target : '') + former,
    after: code === '' ? '' : indent + code + note,
  };
}

const marked = (line: string): string => (/^\s*(#|$)/.test(line) ? ` ${line}` : `+${line}`);

/** A diff of the code that a fix replaces; null if its comments name none. */
export function diffOf(code: string): string | null {
  let isReplacing = false;
  const lines = code
    .trimEnd()
    .split('\n')
    .flatMap((line) => {
      const replacement = replacementOf(line);
      if (!replacement) return [marked(line)];
      isReplacing = true;
      const { before, after } = replacement;
      return after === '' ? [`-${before}`] : [`-${before}`, marked(after)];
    });
  return isReplacing ? lines.join('\n') : null;
}
