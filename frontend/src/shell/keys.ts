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

export function useKeys(showHelp: () => void): void {
  const { go } = useNavigation();
  useEffect(() => {
    let chordUntil = 0;
    const pressed = (event: KeyboardEvent): void => {
      if (isTyping(event.target) || event.ctrlKey || event.metaKey || event.altKey) return;
      const view = event.timeStamp < chordUntil && views.find((each) => each.key === event.key);
      chordUntil = event.key === 'g' ? event.timeStamp + CHORD_MS : 0;
      if (view) go({ view: view.id });
      else if (event.key === '?') showHelp();
      else if (event.key !== '/' || !focusSearch()) return;
      event.preventDefault();
    };
    document.addEventListener('keydown', pressed);
    return () => document.removeEventListener('keydown', pressed);
  }, [go, showHelp]);
}
