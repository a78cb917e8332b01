/** The keys of the timeline; they work with any focus, except while the user types. */
import { useEffect, useRef } from 'react';
import { isFreeKey } from '../../host/typing';

/** Actions by key; one that returns false leaves the key to others. */
export type Keys = Readonly<Record<string, () => unknown>>;

const CHORD_MS = 2500;
/** Keys that a focused element handles itself. */
const ELSEWHERE = new Set(['ArrowLeft', 'ArrowRight', 'ArrowUp', 'ArrowDown', 'Enter']);

const isFree = (target: EventTarget | null): boolean =>
  target === document.body || target instanceof HTMLCanvasElement;

const isOurs = (event: KeyboardEvent): boolean =>
  isFreeKey(event) && !(ELSEWHERE.has(event.key) && !isFree(event.target));

export function useTimelineKeys(keys: Keys): void {
  const latest = useRef(keys);
  latest.current = keys;
  useEffect(() => {
    let chordUntil = 0;
    const pressed = (event: KeyboardEvent): void => {
      if (!isOurs(event)) return;
      // A letter after `g` opens another view.
      const isChord = event.timeStamp < chordUntil;
      chordUntil = event.key === 'g' ? event.timeStamp + CHORD_MS : 0;
      const act = isChord ? undefined : latest.current[event.key];
      if (act && act() !== false) event.preventDefault();
    };
    document.addEventListener('keydown', pressed);
    return () => document.removeEventListener('keydown', pressed);
  }, []);
}
