/**
 * Global keyboard shortcuts. Each has an alternative by mouse, and none works while the user types
 * or a dialog is open.
 */
import { useEffect, useRef, useState } from 'react';
import { isFreeKey } from '../host/typing';
import { useNavigation } from '../state/navigation';
import { views } from '../views';

/** `g`, then a letter within this time. */
const CHORD_MS = 2500;
/** Delay of the hint with the letters. */
const HINT_MS = 500;

const isMac = (): boolean => /mac/i.test(navigator.userAgent ?? '');

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
  /** Filters all views to the previous (-1) or next (1) step; 0 clears the filter. */
  readonly step: (by: -1 | 0 | 1) => void;
  /** Clears the selected event; false if there is none. */
  readonly letGo: () => boolean;
}

/** Shortcuts for the help. */
export const SHELL_KEYS: readonly (readonly [string, string])[] = [
  ['/', 'Search in this view'],
  ['Esc', 'Close menus, clear the search, clear the selected event'],
  ['. ,', 'Filter all views to the next step, the previous step'],
  ['g 0', 'Show the whole trace'],
  ['?', 'This help'],
];

/** Returns true while the letter after `g` is pending. */
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
      const view = views.find((candidate) => candidate.key === key);
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
      const action = single[event.key];
      return action !== undefined && action() !== false;
    };
    const pressed = (event: KeyboardEvent): void => {
      if (isPaletteKey(event)) {
        event.preventDefault();
        latest.current.showPalette();
      } else if (isFreeKey(event) && act(event)) event.preventDefault();
    };
    // On the window, so that open menus receive Escape first.
    window.addEventListener('keydown', pressed);
    return () => {
      endChord();
      window.removeEventListener('keydown', pressed);
    };
  }, []);
  return isWaiting;
}
