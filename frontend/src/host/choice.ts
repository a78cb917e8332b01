/** Small choices of the user that are kept in the browser, where it lets us. */
const PREFIX = 'stepscope.';

export function readChoice(name: string): string | null {
  try {
    return window.localStorage.getItem(PREFIX + name);
  } catch {
    return null; // storage may be forbidden
  }
}

/** Null forgets it. */
export function writeChoice(name: string, value: string | null): void {
  try {
    if (value === null) window.localStorage.removeItem(PREFIX + name);
    else window.localStorage.setItem(PREFIX + name, value);
  } catch {
    // It then holds for as long as the page is open.
  }
}
