import { type ReactNode, useRef } from 'react';
import { usePressOutside } from './press_outside';
import './menu.css';

interface Props {
  readonly label: ReactNode;
  readonly title?: string;
  readonly children: ReactNode;
}

/** A button with a panel; Escape and clicks outside close it. */
export function Menu({ label, title, children }: Props): ReactNode {
  const box = useRef<HTMLDetailsElement>(null);
  usePressOutside(box, () => {
    if (box.current) box.current.open = false;
  });
  return (
    <details
      className="menu"
      ref={box}
      onKeyDown={(event) => {
        if (event.key !== 'Escape' || !box.current?.open) return;
        event.preventDefault();
        box.current.open = false;
        box.current.querySelector('summary')?.focus();
      }}
    >
      <summary className="button" title={title}>
        {label}
      </summary>
      <div className="menu-panel popup">{children}</div>
    </details>
  );
}
