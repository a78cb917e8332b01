/** Keys for the whole page. None is the only way to do a thing, and none works while the user types or a dialog is open. */
import { useEffect, useRef, useState } from 'react';
import { isFreeKey } from '../host/typing';
import { useNavigation } from '../state/navigation';
import { views } from '../views';

/** `g` then a letter; the letter counts for a moment only. */
const CHORD_MS = 2500;
/** Who hesitates is told the letters. */
const HINT_MS = 500;

const isMac = (): boolean => /mac/i.test(navigator.userAgent ?? '');

/** `⌘ K`, or `Ctrl K`. */
export const paletteKey = (): string => (isMac() ? '⌘ K' : 'Ctrl K');

const isPaletteKey = (event: KeyboardEvent): boolean =>
  event.key.toLowerCase() === 'k' &&
  !event.altKey &&
  !event.shiftKey &&
  (isMac() ? event.metaKey : event.ctrlKey);

function focusSearch(): boolean {
  const box = document.querySelector<HTMLInputElement>('[data-search]');
  box?.focus();
  box?.select();
  return box !== null;
}

export interface Acts {
  readonly showHelp: () => void;
  readonly showPalette: () => void;
  /** Narrows to the step before (-1) or behind (1); 0 shows the whole recording again. */
  readonly step: (by: -1 | 0 | 1) => void;
  /** Lets the selected event go; false where there is none. */
  readonly letGo: () => boolean;
}

/** Keys of the shell with what they do, for the help. */
export const SHELL_KEYS: readonly (readonly [string, string])[] = [
  ['/', 'Search in this view'],
  ['Esc', 'Close what is open, clear the search, let the selected event go'],
  ['. ,', 'Narrow all views to the next step, the previous step'],
  ['g 0', 'Show the whole recording again'],
  ['?', 'This help'],
];

/** Answers true while the letter behind a `g` is waited for. */
export function useKeys(acts: Acts): boolean {
  const { go, backTo } = useNavigation();
  const [isWaiting, setWaiting] = useState(false);
  const latest = useRef({ ...acts, go, backTo });
  latest.current = { ...acts, go, backTo };
  useEffect(() => {
    let chordUntil = 0;
    let timers: ReturnType<typeof setTimeout>[] = [];
    const endChord = (): void => {
      chordUntil = 0;
      for (const timer of timers) clearTimeout(timer);
      timers = [];
      setWaiting(false);
    };
    const beginChord = (now: number): void => {
      endChord();
      chordUntil = now + CHORD_MS;
      timers = [setTimeout(() => setWaiting(true), HINT_MS), setTimeout(endChord, CHORD_MS)];
    };
    const actOnChord = (key: string): boolean => {
      const view = views.find((each) => each.key === key);
      if (view) latest.current.go(latest.current.backTo(view.id));
      else if (key === '0') latest.current.step(0);
      else return key === 'Escape';
      return true;
    };
    const single: Readonly<Record<string, () => unknown>> = {
      '?': () => latest.current.showHelp(),
      '/': focusSearch,
      ',': () => latest.current.step(-1),
      '.': () => latest.current.step(1),
      Escape: () => latest.current.letGo(),
    };
    const act = (event: KeyboardEvent): boolean => {
      const isChord = event.timeStamp < chordUntil;
      if (isChord && event.key !== 'g') {
        endChord();
        if (actOnChord(event.key)) return true;
      }
      if (event.key === 'g') {
        beginChord(event.timeStamp);
        return false;
      }
      const found = single[event.key];
      return found !== undefined && found() !== false;
    };
    const pressed = (event: KeyboardEvent): void => {
      if (isPaletteKey(event)) {
        event.preventDefault();
        latest.current.showPalette();
      } else if (isFreeKey(event) && act(event)) event.preventDefault();
    };
    // On the window, so that whatever is open in the document hears Escape first.
    window.addEventListener('keydown', pressed);
    return () => {
      endChord();
      window.removeEventListener('keydown', pressed);
    };
  }, []);
  return isWaiting;
}
