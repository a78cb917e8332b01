/** The findings that the user dismissed in this browser. */
import type { Outcome } from '../../api/types.gen';
import { readChoice, writeChoice } from '../../host/choice';

const CHOICE = 'dismissed';
const MOST_ENTRIES = 500;

/** The same key in all traces of the same code; without a fingerprint, of this trace only. */
export const keyOf = (outcome: Outcome): string =>
  outcome.fingerprint === '' ? `${outcome.rule} ${outcome.trace}` : outcome.fingerprint;

function read(): readonly string[] {
  try {
    const value: unknown = JSON.parse(readChoice(CHOICE) ?? '[]');
    return Array.isArray(value) ? value.filter((key) => typeof key === 'string') : [];
  } catch {
    return [];
  }
}

let present: readonly string[] | null = null;
const listeners = new Set<() => void>();

function put(next: readonly string[]): void {
  present = next.slice(-MOST_ENTRIES);
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
  /** Reads the browser's storage again. */
  forget: (): void => {
    present = null;
    for (const listener of listeners) listener();
  },
};
