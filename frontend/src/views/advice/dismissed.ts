/** Findings that the user has put aside in this browser, by what they are of; never hidden without a word. */
import type { Outcome } from '../../api/types.gen';
import { readChoice, writeChoice } from '../../host/choice';

const CHOICE = 'dismissed';
const MOST_KEPT = 500;

/** The same finding in every recording of the same code; without a fingerprint, this one. */
export const keyOf = (outcome: Outcome): string =>
  outcome.fingerprint === '' ? `${outcome.rule} ${outcome.trace}` : outcome.fingerprint;

function read(): readonly string[] {
  try {
    const value: unknown = JSON.parse(readChoice(CHOICE) ?? '[]');
    return Array.isArray(value) ? value.filter((each) => typeof each === 'string') : [];
  } catch {
    return [];
  }
}

let present: readonly string[] | null = null;
const listeners = new Set<() => void>();

function put(next: readonly string[]): void {
  present = next.slice(-MOST_KEPT);
  writeChoice(CHOICE, present.length > 0 ? JSON.stringify(present) : null);
  for (const listener of listeners) listener();
}

export const dismissals = {
  current: (): readonly string[] => {
    present ??= read();
    return present;
  },
  subscribe: (changed: () => void): (() => void) => {
    listeners.add(changed);
    return () => listeners.delete(changed);
  },
  dismiss: (outcome: Outcome): void =>
    put([...dismissals.current().filter((key) => key !== keyOf(outcome)), keyOf(outcome)]),
  restore: (outcome: Outcome): void =>
    put(dismissals.current().filter((key) => key !== keyOf(outcome))),
  /** What the browser holds is read anew. */
  forget: (): void => {
    present = null;
    for (const listener of listeners) listener();
  },
};
