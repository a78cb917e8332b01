/** Conditions for global keyboard shortcuts. */

/** Fields that letters do nothing in. */
const CHOICES = ['radio', 'checkbox'];

/** Whether the user types into a field. */
export const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  !(target instanceof HTMLInputElement && CHOICES.includes(target.type)) &&
  (target.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName));

/** Keys with a modifier belong to the browser or the system. */
export const hasModifier = (event: KeyboardEvent): boolean =>
  event.ctrlKey || event.metaKey || event.altKey;

/** An open dialog receives all keys. */
export const hasDialog = (): boolean => document.querySelector('dialog[open]') !== null;

/** Whether a key may trigger a global shortcut. */
export const isFreeKey = (event: KeyboardEvent): boolean =>
  !(event.defaultPrevented || isTyping(event.target) || hasModifier(event) || hasDialog());
