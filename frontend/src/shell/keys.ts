/** Keys for the whole page. None is the only way to do a thing, and none works while the user types. */
import { useEffect } from 'react';
import { useNavigation } from '../state/navigation';
import { views } from '../views';

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  (target.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(target.tagName));

/** `g` then a view's letter; the letter counts for a moment only. */
const CHORD_MS = 1200;

function focusSearch(): boolean {
  const box = document.querySelector<HTMLInputElement>('[data-search]');
  box?.focus();
  box?.select();
  return box !== null;
}

/** Keys with a modifier are the browser's or the system's. */
const isOurs = (event: KeyboardEvent): boolean =>
  !(isTyping(event.target) || event.ctrlKey || event.metaKey || event.altKey);

export function useKeys(showHelp: () => void): void {
  const { go } = useNavigation();
  useEffect(() => {
    let chordUntil = 0;
    const act = (event: KeyboardEvent): boolean => {
      const isChord = event.timeStamp < chordUntil;
      chordUntil = event.key === 'g' ? event.timeStamp + CHORD_MS : 0;
      const view = isChord ? views.find((each) => each.key === event.key) : undefined;
      if (view) go({ view: view.id });
      else if (event.key === '?') showHelp();
      else return event.key === '/' && focusSearch();
      return true;
    };
    const pressed = (event: KeyboardEvent): void => {
      if (isOurs(event) && act(event)) event.preventDefault();
    };
    document.addEventListener('keydown', pressed);
    return () => document.removeEventListener('keydown', pressed);
  }, [go, showHelp]);
}
