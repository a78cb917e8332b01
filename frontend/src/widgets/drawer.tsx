import { type ReactNode, useEffect } from 'react';
import { Icon } from './icon';
import './drawer.css';

interface Props {
  readonly title: string;
  readonly close: () => void;
  readonly children: ReactNode;
}

/** Details at the right, beside what they are of; Escape closes it. */
export function Drawer({ title, close, children }: Props): ReactNode {
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      if (event.key === 'Escape' && !event.defaultPrevented) close();
    };
    document.addEventListener('keydown', pressed);
    return () => document.removeEventListener('keydown', pressed);
  }, [close]);
  return (
    <aside className="drawer" aria-label={title}>
      <header>
        <h2>{title}</h2>
        <button
          type="button"
          className="button quiet square"
          aria-label="Close details"
          onClick={close}
        >
          <Icon name="close" />
        </button>
      </header>
      <div className="drawer-body">{children}</div>
    </aside>
  );
}
