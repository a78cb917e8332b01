/** Fuzzy search: every word of the query must match, best at the start of a word. Pure. */

export interface Match {
  readonly score: number;
  /** Positions of the matched letters, ascending. */
  readonly positions: readonly number[];
}

const WHOLE = 100;
const AT_START = 40;
const AT_WORD = 25;
const IN_ONE_PIECE = 20;
const SCATTERED = 4;
/** The largest gap between matched letters; long names would otherwise match every short word. */
const WIDEST = 3;

const isWordStart = (text: string, at: number): boolean => {
  if (at === 0) return true;
  const before = text[at - 1] ?? '';
  const here = text[at] ?? '';
  return /[^\p{L}\p{N}]/u.test(before) || (/\p{Ll}|\p{N}/u.test(before) && /\p{Lu}/u.test(here));
};

function pieceScore(text: string, at: number, word: string): number {
  if (at === 0) return word.length === text.length ? WHOLE : AT_START;
  return isWordStart(text, at) ? AT_WORD : IN_ONE_PIECE;
}

const range = (start: number, length: number): number[] =>
  Array.from({ length }, (_, offset) => start + offset);

/** The best contiguous match of a word. */
function inOnePiece(text: string, lower: string, word: string): Match | null {
  let best: Match | null = null;
  for (let at = lower.indexOf(word); at >= 0; at = lower.indexOf(word, at + 1)) {
    const score = pieceScore(text, at, word);
    if (!best || score > best.score) best = { score, positions: range(at, word.length) };
    if (score >= AT_WORD) break;
  }
  return best;
}

/** A match of letters in order, each at the start of a word or near the previous one. */
function scattered(text: string, lower: string, word: string): Match | null {
  const positions: number[] = [];
  let score = 0;
  let from = 0;
  for (const letter of word) {
    const last = positions.at(-1);
    let at = lower.indexOf(letter, from);
    while (at >= 0 && !isWordStart(text, at) && (last === undefined || at - last > WIDEST))
      at = lower.indexOf(letter, at + 1);
    if (at < 0) return null;
    score += isWordStart(text, at) ? SCATTERED : 1;
    positions.push(at);
    from = at + 1;
  }
  return { score, positions };
}

function matchWord(text: string, lower: string, word: string): Match | null {
  return inOnePiece(text, lower, word) ?? (word.length > 1 ? scattered(text, lower, word) : null);
}

export const wordsOf = (typed: string): readonly string[] =>
  typed.toLowerCase().split(/\s+/).filter(Boolean);

/**
 * The match of a query in a text; null if a word does not match. `about` matches without being
 * shown.
 */
export function match(text: string, words: readonly string[], about = ''): Match | null {
  const lower = text.toLowerCase();
  const positions = new Set<number>();
  let score = 0;
  for (const word of words) {
    const matched = matchWord(text, lower, word);
    if (!matched && !about.includes(word)) return null;
    score += matched?.score ?? 1;
    for (const position of matched?.positions ?? []) positions.add(position);
  }
  // Shorter texts are preferred among equal matches.
  return {
    score: score - Math.min(9, text.length / 20),
    positions: [...positions].sort((a, b) => a - b),
  };
}

export interface Piece {
  readonly text: string;
  readonly isMatched: boolean;
}

/** A text split into matched and other pieces. */
export function pieces(text: string, positions: readonly number[]): readonly Piece[] {
  const matched = new Set(positions);
  const made: { text: string; isMatched: boolean }[] = [];
  for (let at = 0; at < text.length; at += 1) {
    const isMatched = matched.has(at);
    const last = made.at(-1);
    if (last?.isMatched === isMatched) last.text += text[at];
    else made.push({ text: text[at] ?? '', isMatched });
  }
  return made;
}
