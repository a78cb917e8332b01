/** Search among choices, and jumps between ranges of ranks. Pure. */

export interface Findable {
  readonly label: string;
  /** The rank. */
  readonly number?: number | null | undefined;
  /** Further searchable text: the host. */
  readonly about?: string | undefined;
}

const DIGITS = /^\d+$/;

/** Rank of a match of digits: the same number, a number with this prefix, any other match. */
function order(choice: Findable, typed: string): number {
  const number = choice.number ?? null;
  if (number === null) return 2;
  if (String(number) === typed) return 0;
  return String(number).startsWith(typed) ? 1 : 2;
}

/** The choices that match the query; digits match ranks first. */
export function matchesIn<T extends Findable>(choices: readonly T[], typed: string): readonly T[] {
  const query = typed.trim().toLowerCase();
  if (query === '') return choices;
  const holds = ({ label, about = '' }: T): boolean =>
    label.toLowerCase().includes(query) || about.toLowerCase().includes(query);
  if (!DIGITS.test(query)) return choices.filter(holds);
  return choices
    .filter((choice) => holds(choice) || order(choice, query) < 2)
    .toSorted((a, b) => order(a, query) - order(b, query));
}

export interface Jump {
  readonly label: string;
  /** The index of its first choice. */
  readonly at: number;
}

const MOST_JUMPS = 9;
const JUMPS_FROM = 48;

/**
 * Ranges of ranks to jump to, a power of two each; none for short lists or choices without a
 * number.
 */
export function jumpsOf(choices: readonly Findable[]): readonly Jump[] {
  if (choices.length < JUMPS_FROM) return [];
  const numbers = choices.map(({ number }) => number ?? null);
  if (numbers.some((number) => number === null)) return [];
  let size = 8;
  while (choices.length / size > MOST_JUMPS) size *= 2;
  const starts = Array.from({ length: Math.ceil(choices.length / size) }, (_, part) => part * size);
  return starts.map((at) => {
    const last = Math.min(at + size, choices.length) - 1;
    return { at, label: `${numbers[at]}–${numbers[last]}` };
  });
}
