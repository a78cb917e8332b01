import { type ReactNode, useEffect, useRef } from 'react';
import { Button } from './button';
import { Icon } from './icon';
import './drawer.css';

interface Props {
  readonly title: string;
  readonly close: () => void;
  readonly children: ReactNode;
  /** Buttons next to the title. */
  readonly actions?: ReactNode;
}

/** Details on the right of a view; Escape closes them. */
export function Drawer({ title, close, children, actions }: Props): ReactNode {
  const latest = useRef(close);
  latest.current = close;
  useEffect(() => {
    const pressed = (event: KeyboardEvent): void => {
      if (event.key !== 'Escape' || event.defaultPrevented) return;
      event.preventDefault();
      latest.current();
    };
    document.addEventListener('keydown', pressed);
    return () => document.removeEventListener('keydown', pressed);
  }, []);
  return (
    <aside className="drawer column" aria-label={title}>
      <header className="flex">
        <h2>{title}</h2>
        {actions}
        <Button quiet square aria-label="Close details" title="Close (Esc)" onClick={close}>
          <Icon name="close" />
        </Button>
      </header>
      <div className="drawer-body">{children}</div>
    </aside>
  );
}
