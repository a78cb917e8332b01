/** Finding one of many choices by typing, and jumping between ranges of them. Pure. */

export interface Findable {
  readonly label: string;
  /** A number it is known by: a rank. */
  readonly number?: number | null | undefined;
  /** What else it is found by: its machine. */
  readonly about?: string | undefined;
}

const DIGITS = /^\d+$/;

/** How well a choice answers to digits: its very number, one that begins so, anything else. */
function order(choice: Findable, typed: string): number {
  const number = choice.number ?? null;
  if (number === null) return 2;
  if (String(number) === typed) return 0;
  return String(number).startsWith(typed) ? 1 : 2;
}

/** The choices whose label holds what was typed; digits find the rank of that number first. */
export function foundIn<T extends Findable>(choices: readonly T[], typed: string): readonly T[] {
  const wanted = typed.trim().toLowerCase();
  if (wanted === '') return choices;
  const holds = ({ label, about = '' }: T): boolean =>
    label.toLowerCase().includes(wanted) || about.toLowerCase().includes(wanted);
  if (!DIGITS.test(wanted)) return choices.filter(holds);
  return choices
    .filter((choice) => holds(choice) || order(choice, wanted) < 2)
    .toSorted((a, b) => order(a, wanted) - order(b, wanted));
}

export interface Jump {
  readonly label: string;
  /** The place of its first choice. */
  readonly at: number;
}

const MOST_JUMPS = 9;
const JUMPS_FROM = 48;

/** Ranges of ranks to jump to, a power of two each; none where there are few, or where not all have a number. */
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
