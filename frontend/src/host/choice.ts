/** The user's settings in local storage, where the browser allows it. */
const PREFIX = 'stepscope.';

export function readChoice(name: string): string | null {
  try {
    return window.localStorage.getItem(PREFIX + name);
  } catch {
    return null; // storage may be forbidden
  }
}

/** Null removes the setting. */
export function writeChoice(name: string, value: string | null): void {
  try {
    if (value === null) window.localStorage.removeItem(PREFIX + name);
    else window.localStorage.setItem(PREFIX + name, value);
  } catch {
    // The setting then lasts until the page is closed.
  }
}
