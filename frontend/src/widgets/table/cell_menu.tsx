import {
  type KeyboardEvent,
  type ReactNode,
  useEffect,
  useLayoutEffect,
  useRef,
  useState,
} from 'react';
import { createPortal } from 'react-dom';

export interface Entry {
  readonly label: string;
  readonly run: () => void;
}

interface Props {
  readonly at: { readonly x: number; readonly y: number };
  readonly entries: readonly Entry[];
  readonly close: () => void;
}

const MARGIN_PX = 8;

/** The menu of a cell; arrow keys move, Escape closes. */
export function CellMenu({ at, entries, close }: Props): ReactNode {
  const box = useRef<HTMLDivElement>(null);
  const [position, setPosition] = useState({ left: at.x, top: at.y });
  // Returns the focus to its previous element.
  useLayoutEffect(() => {
    const before = document.activeElement;
    return () => {
      const isHere = box.current?.contains(document.activeElement) === true;
      if (isHere && before instanceof HTMLElement) before.focus({ preventScroll: true });
    };
  }, []);
  useLayoutEffect(() => {
    const { width = 0, height = 0 } = box.current?.getBoundingClientRect() ?? {};
    setPosition({
      left: Math.max(MARGIN_PX, Math.min(at.x, window.innerWidth - width - MARGIN_PX)),
      top: Math.max(MARGIN_PX, Math.min(at.y, window.innerHeight - height - MARGIN_PX)),
    });
    box.current?.querySelector('button')?.focus();
  }, [at]);
  useEffect(() => {
    const pressed = (event: Event): void => {
      if (!box.current?.contains(event.target as Node)) close();
    };
    document.addEventListener('pointerdown', pressed, true);
    window.addEventListener('scroll', close, true);
    return () => {
      document.removeEventListener('pointerdown', pressed, true);
      window.removeEventListener('scroll', close, true);
    };
  }, [close]);
  const onKeyDown = (event: KeyboardEvent): void => {
    const buttons = [...(box.current?.querySelectorAll('button') ?? [])];
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    event.stopPropagation();
    if (event.key === 'Escape' || event.key === 'Tab') {
      event.preventDefault();
      close();
    } else if (step !== undefined) {
      event.preventDefault();
      const current = buttons.indexOf(document.activeElement as HTMLButtonElement);
      buttons[(current + step + buttons.length) % buttons.length]?.focus();
    }
  };
  // In the body, since the scrolling table would clip it.
  return createPortal(
    <div
      className="cell-menu popup"
      role="menu"
      aria-label="This cell"
      tabIndex={-1}
      style={position}
      ref={box}
      onKeyDown={onKeyDown}
    >
      {entries.map((entry) => (
        <button
          key={entry.label}
          type="button"
          role="menuitem"
          className="option"
          onClick={() => {
            close();
            entry.run();
          }}
        >
          {entry.label}
        </button>
      ))}
    </div>,
    document.body,
  );
}
