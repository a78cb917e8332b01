/** What a key that is heard everywhere must know of where the user is. */

/** True while the user writes into a field: letters are then no commands. */
export const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName));

/** Keys with a modifier are the browser's or the system's. */
export const hasModifier = (event: KeyboardEvent): boolean =>
  event.ctrlKey || event.metaKey || event.altKey;

/** An open dialog has all keys for itself. */
export const hasDialog = (): boolean => document.querySelector('dialog[open]') !== null;

/** A key that parts of the page may act on wherever the focus is. */
export const isFreeKey = (event: KeyboardEvent): boolean =>
  !(event.defaultPrevented || isTyping(event.target) || hasModifier(event) || hasDialog());
