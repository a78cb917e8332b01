/** The theme: TensorBoard's inside TensorBoard, otherwise the user's, otherwise the system's. */
import { useSyncExternalStore } from 'react';
import { host } from './frame';

export type Theme = 'light' | 'dark';

const KEY = 'stepscope.theme';
const system = window.matchMedia('(prefers-color-scheme: dark)');
const listeners = new Set<() => void>();

function stored(): Theme | null {
  try {
    const value = window.localStorage.getItem(KEY);
    return value === 'light' || value === 'dark' ? value : null;
  } catch {
    return null;
  }
}

let isOnPaper = false;

function read(): Theme {
  if (isOnPaper) return 'light';
  if (host) return host.window.document.body.classList.contains('dark-mode') ? 'dark' : 'light';
  return stored() ?? (system.matches ? 'dark' : 'light');
}

let theme = read();

function update(): void {
  theme = read();
  document.documentElement.dataset.theme = theme;
  for (const listener of listeners) listener();
}

if (host) {
  const observer = new MutationObserver(update);
  observer.observe(host.window.document.body, { attributes: true, attributeFilter: ['class'] });
} else system.addEventListener('change', update);
// Charts are drawn in the light theme for print.
for (const [event, isPrinting] of [
  ['beforeprint', true],
  ['afterprint', false],
] as const) {
  window.addEventListener(event, () => {
    isOnPaper = isPrinting;
    update();
  });
}
update();

export const themeStore = {
  current: (): Theme => theme,
  subscribe: (changed: () => void): (() => void) => {
    listeners.add(changed);
    return () => listeners.delete(changed);
  },
  /** Inside TensorBoard, TensorBoard's switch applies. */
  canToggle: host === null,
  toggle: (): void => {
    try {
      window.localStorage.setItem(KEY, theme === 'dark' ? 'light' : 'dark');
    } catch {
      return;
    }
    update();
  },
};

/** The theme of the page, as it changes. */
export const useTheme = (): Theme => useSyncExternalStore(themeStore.subscribe, themeStore.current);
