/** Notices that the user closed, remembered until the browser's tab is closed. */
import { useSyncExternalStore } from 'react';

const KEY = 'stepscope.dismissed';
const listeners = new Set<() => void>();

function stored(): readonly string[] {
  try {
    const keys: unknown = JSON.parse(window.sessionStorage.getItem(KEY) ?? '[]');
    return Array.isArray(keys) ? keys.map(String) : [];
  } catch {
    return []; // storage may be forbidden
  }
}

let dismissed: ReadonlySet<string> = new Set(stored());

function replace(keys: ReadonlySet<string>): void {
  dismissed = keys;
  try {
    window.sessionStorage.setItem(KEY, JSON.stringify([...keys]));
  } catch {
    // The notices then return with the next load of the page.
  }
  for (const listener of listeners) listener();
}

/** Closes notices; a key names a file in one state and what the notice says of it. */
export const dismiss = (keys: readonly string[]): void => replace(new Set([...dismissed, ...keys]));

/** Shows all notices again, for tests. */
export const clearDismissed = (): void => replace(new Set());

function subscribe(changed: () => void): () => void {
  listeners.add(changed);
  return () => listeners.delete(changed);
}

/** The keys of closed notices. */
export const useDismissed = (): ReadonlySet<string> =>
  useSyncExternalStore(subscribe, () => dismissed);
