/** What the user scrolled and unfolded in an element, to restore it when they come back. */

interface Scroll {
  readonly key: string;
  readonly top: number;
  readonly left: number;
}

export interface Position {
  readonly scrolls: readonly Scroll[];
  /** Whether each foldable part is open, by key. */
  readonly folds: ReadonlyMap<string, boolean>;
}

/** How long content may take to load until its position is no longer restored. */
const MOST_MS = 5000;
/** All parts are looked for at most once in this time, however often content changes. */
const PAUSE_MS = 100;
/** The user acts, anywhere on the page. */
const USER_EVENTS = ['wheel', 'pointerdown', 'touchstart', 'keydown'] as const;
const LISTENER = { capture: true, passive: true } as const;

/** Names equal parts by their order. */
function numbered(): (name: string) => string {
  const counts = new Map<string, number>();
  return (name) => {
    const count = counts.get(name) ?? 0;
    counts.set(name, count + 1);
    return `${name} ${count}`;
  };
}

function foldsIn(root: HTMLElement): [string, HTMLDetailsElement][] {
  const keyOf = numbered();
  return [...root.querySelectorAll<HTMLDetailsElement>('details:not(.menu)')].map((fold) => [
    keyOf(fold.querySelector('summary')?.textContent ?? ''),
    fold,
  ]);
}

/** The element and all its parts, by their classes. */
function partsIn(root: HTMLElement): [string, Element][] {
  const keyOf = numbered();
  return [root, ...root.querySelectorAll('*')].map((part) => [
    keyOf(part.getAttribute('class') ?? ''),
    part,
  ]);
}

export function positionOf(root: HTMLElement): Position {
  const scrolls = partsIn(root)
    .filter(([, { scrollTop, scrollLeft }]) => scrollTop > 0 || scrollLeft > 0)
    .map(([key, { scrollTop: top, scrollLeft: left }]) => ({ key, top, left }));
  return { scrolls, folds: new Map(foldsIn(root).map(([key, fold]) => [key, fold.open])) };
}

function scrollTo(root: HTMLElement, scrolls: readonly Scroll[]): void {
  if (scrolls.length === 0) return;
  const parts = new Map(partsIn(root));
  for (const { key, top, left } of scrolls) {
    const part = parts.get(key);
    if (part && part.scrollTop !== top) part.scrollTop = top;
    if (part && part.scrollLeft !== left) part.scrollLeft = left;
  }
}

/** Restores a position while content loads, until the user acts; returns how to stop. */
export function restorePosition(root: HTMLElement, { scrolls, folds }: Position): () => void {
  const left = new Map(folds);
  const unfold = (): void => {
    for (const [key, fold] of foldsIn(root)) {
      fold.open = left.get(key) ?? fold.open;
      left.delete(key);
    }
  };
  const apply = (): void => {
    unfold();
    scrollTo(root, scrolls);
  };
  let pause: ReturnType<typeof setTimeout> | undefined;
  let hasChanged = false;
  const change = (): void => {
    hasChanged = pause !== undefined;
    if (hasChanged) return;
    apply();
    pause = setTimeout(() => {
      pause = undefined;
      if (hasChanged) change();
    }, PAUSE_MS);
  };
  const observer = new MutationObserver(change);
  const stop = (): void => {
    observer.disconnect();
    clearTimeout(timer);
    clearTimeout(pause);
    for (const name of USER_EVENTS) window.removeEventListener(name, stop, LISTENER);
  };
  const timer = setTimeout(stop, MOST_MS);
  for (const name of USER_EVENTS) window.addEventListener(name, stop, LISTENER);
  observer.observe(root, { childList: true, subtree: true });
  apply();
  return stop;
}
