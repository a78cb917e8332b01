import type { ButtonHTMLAttributes, ReactNode } from 'react';
import { Icon, type IconName } from './icon';

interface Props extends ButtonHTMLAttributes<HTMLButtonElement> {
  /** Without a border until the pointer is on it. */
  readonly quiet?: boolean;
  /** As wide as it is high: for a single character. */
  readonly square?: boolean;
}

export function Button({ quiet, square, ...attributes }: Props): ReactNode {
  const className = `button${quiet ? ' quiet' : ''}${square ? ' square' : ''}`;
  return <button type="button" className={className} {...attributes} />;
}

interface IconButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  readonly icon: IconName;
  readonly label: string;
  readonly size?: number;
}

/** A square, quiet button that shows an icon only. */
export function IconButton({ icon, label, size = 14, ...attributes }: IconButtonProps): ReactNode {
  return (
    <Button quiet square aria-label={label} {...attributes}>
      <Icon name={icon} size={size} />
    </Button>
  );
}
