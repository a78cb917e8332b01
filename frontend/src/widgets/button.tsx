import type { ComponentProps, ReactNode } from 'react';
import { Icon, type IconName } from './icon';

interface Props extends ComponentProps<'button'> {
  /** Without a border until the pointer is on it. */
  readonly quiet?: boolean;
  /** As wide as it is high: for a single character. */
  readonly square?: boolean;
  readonly small?: boolean;
}

export function Button({ quiet, square, small, className, ...attributes }: Props): ReactNode {
  const looks = [quiet && 'quiet', small && 'small', square && 'square', className];
  const classes = ['button', ...looks].filter(Boolean).join(' ');
  return <button type="button" {...attributes} className={classes} />;
}

interface IconButtonProps extends Props {
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
