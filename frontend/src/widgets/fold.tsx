import { type ReactNode, useState } from 'react';
import { count } from '../core/format';
import { Icon } from './icon';
import './fold.css';

interface Props {
  readonly title: string;
  readonly note: string;
  readonly size: number;
  readonly isOpen?: boolean;
  readonly children: ReactNode;
}

/** A collapsible list with its length; nothing if it is empty. */
export function Fold({ title, note, size, isOpen = false, children }: Props): ReactNode {
  // Stays open when the contents that opened it are closed.
  const [isOpened, setOpened] = useState(isOpen);
  if (size === 0) return null;
  return (
    <details
      className="fold framed"
      open={isOpen || isOpened}
      onToggle={(event) => setOpened(event.currentTarget.open)}
    >
      <summary className="flex">
        <Icon name="chevron" />
        <span className="strong">{title}</span>
        <span className="tag">{count(size)}</span>
        <span className="muted">{note}</span>
      </summary>
      <ul>{children}</ul>
    </details>
  );
}
