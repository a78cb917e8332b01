/** Whether the page is visible: a hidden tab of TensorBoard keeps its frame at size zero. */

const listeners = new Set<() => void>();

const read = (): boolean =>
  document.visibilityState === 'visible' && window.innerWidth > 0 && window.innerHeight > 0;

let visible = read();

function update(): void {
  const now = read();
  if (now === visible) return;
  visible = now;
  for (const listener of listeners) listener();
}

document.addEventListener('visibilitychange', update);
window.addEventListener('resize', update);
new ResizeObserver(update).observe(document.documentElement);

export const visibleStore = {
  current: (): boolean => visible,
  subscribe: (changed: () => void): (() => void) => {
    listeners.add(changed);
    return () => listeners.delete(changed);
  },
};
