/** Finding by a few letters: every word that was typed has to be in the text, at best in one piece at the start of a word. Pure. */

export interface Match {
  /** Higher is better. */
  readonly score: number;
  /** Places of the letters that were found, in order. */
  readonly places: readonly number[];
}

const WHOLE = 100;
const AT_START = 40;
const AT_WORD = 25;
const IN_ONE_PIECE = 20;
const SCATTERED = 4;
/** Letters that lie further apart than this are no match: every long name would hold every short word. */
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

/** The word in one piece, where that is worth most. */
function inOnePiece(text: string, lower: string, word: string): Match | null {
  let best: Match | null = null;
  for (let at = lower.indexOf(word); at >= 0; at = lower.indexOf(word, at + 1)) {
    const score = pieceScore(text, at, word);
    if (!best || score > best.score) best = { score, places: range(at, word.length) };
    if (score >= AT_WORD) break;
  }
  return best;
}

/** The word's letters in order, each at the start of a word or near the one before. */
function scattered(text: string, lower: string, word: string): Match | null {
  const places: number[] = [];
  let score = 0;
  let from = 0;
  for (const letter of word) {
    const last = places.at(-1);
    let at = lower.indexOf(letter, from);
    while (at >= 0 && !isWordStart(text, at) && (last === undefined || at - last > WIDEST))
      at = lower.indexOf(letter, at + 1);
    if (at < 0) return null;
    score += isWordStart(text, at) ? SCATTERED : 1;
    places.push(at);
    from = at + 1;
  }
  return { score, places };
}

function matchWord(text: string, lower: string, word: string): Match | null {
  return inOnePiece(text, lower, word) ?? (word.length > 1 ? scattered(text, lower, word) : null);
}

export const wordsOf = (typed: string): readonly string[] =>
  typed.toLowerCase().split(/\s+/).filter(Boolean);

/** How well a text answers to the words that were typed; null where one of them is not in it. `about` counts, unseen. */
export function match(text: string, words: readonly string[], about = ''): Match | null {
  const lower = text.toLowerCase();
  const places = new Set<number>();
  let score = 0;
  for (const word of words) {
    const found = matchWord(text, lower, word);
    if (!found && !about.includes(word)) return null;
    score += found?.score ?? 1;
    for (const place of found?.places ?? []) places.add(place);
  }
  // Of texts that match alike the shorter one was meant.
  return {
    score: score - Math.min(9, text.length / 20),
    places: [...places].sort((a, b) => a - b),
  };
}

export interface Piece {
  readonly text: string;
  readonly isFound: boolean;
}

/** A text in pieces that were found and pieces that were not, in order. */
export function pieces(text: string, places: readonly number[]): readonly Piece[] {
  const found = new Set(places);
  const made: { text: string; isFound: boolean }[] = [];
  for (let at = 0; at < text.length; at += 1) {
    const isFound = found.has(at);
    const last = made.at(-1);
    if (last?.isFound === isFound) last.text += text[at];
    else made.push({ text: text[at] ?? '', isFound });
  }
  return made;
}
