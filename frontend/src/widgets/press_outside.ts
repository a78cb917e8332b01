import { type RefObject, useEffect, useRef } from 'react';

/** Calls `close` on a press outside an element, while it is open. */
export function usePressOutside(
  inside: RefObject<HTMLElement | null>,
  close: () => void,
  isOpen = true,
): void {
  const latest = useRef(close);
  latest.current = close;
  useEffect(() => {
    if (!isOpen) return undefined;
    const pressed = (event: Event): void => {
      if (!inside.current?.contains(event.target as Node)) latest.current();
    };
    document.addEventListener('pointerdown', pressed, true);
    return () => document.removeEventListener('pointerdown', pressed, true);
  }, [inside, isOpen]);
}
