/** Whether the page is being printed, which opens all findings. */
import { useSyncExternalStore } from 'react';
import { flushSync } from 'react-dom';

let isPrinting = false;
const listeners = new Set<() => void>();

function set(value: boolean): void {
  isPrinting = value;
  // The browser renders the print as soon as this returns.
  flushSync(() => {
    for (const listener of listeners) listener();
  });
}

function subscribe(changed: () => void): () => void {
  if (listeners.size === 0) {
    window.addEventListener('beforeprint', begin);
    window.addEventListener('afterprint', end);
  }
  listeners.add(changed);
  return () => {
    listeners.delete(changed);
    if (listeners.size > 0) return;
    window.removeEventListener('beforeprint', begin);
    window.removeEventListener('afterprint', end);
  };
}

const begin = (): void => set(true);
const end = (): void => set(false);

export const usePrinting = (): boolean => useSyncExternalStore(subscribe, () => isPrinting);
