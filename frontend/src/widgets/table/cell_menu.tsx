import {
  type KeyboardEvent,
  type ReactNode,
  useEffect,
  useLayoutEffect,
  useRef,
  useState,
} from 'react';
import { createPortal } from 'react-dom';
import { movedIndex } from '../../core/list_keys';
import { usePressOutside } from '../press_outside';

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
  usePressOutside(box, close);
  useEffect(() => {
    window.addEventListener('scroll', close, true);
    return () => window.removeEventListener('scroll', close, true);
  }, [close]);
  const onKeyDown = (event: KeyboardEvent): void => {
    const buttons = [...(box.current?.querySelectorAll('button') ?? [])];
    const current = buttons.indexOf(document.activeElement as HTMLButtonElement);
    const next = movedIndex(event.key, current, buttons.length, { isRing: true });
    event.stopPropagation();
    if (event.key === 'Escape' || event.key === 'Tab') {
      event.preventDefault();
      close();
    } else if (next !== null) {
      event.preventDefault();
      buttons[next]?.focus();
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
