/** The timeline's keys: they work wherever the focus is in the page, but not while the user types. */
import { useEffect, useRef } from 'react';
import { isFreeKey } from '../../host/typing';

/** What a key does; false: nothing right now, others may use it. */
export type Keys = Readonly<Record<string, () => boolean | undefined>>;

const CHORD_MS = 2500;
/** Keys that other parts of the page use when they have the focus. */
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
      // A letter behind `g` belongs to the page: it leads to another view.
      const isChord = event.timeStamp < chordUntil;
      chordUntil = event.key === 'g' ? event.timeStamp + CHORD_MS : 0;
      const act = isChord ? undefined : latest.current[event.key];
      if (act && act() !== false) event.preventDefault();
    };
    document.addEventListener('keydown', pressed);
    return () => document.removeEventListener('keydown', pressed);
  }, []);
}
