import type { ReactNode } from 'react';
import { Button } from './button';
import { Icon } from './icon';

/** A button that closes a notice. */
export function CloseNotice({ onClose }: { readonly onClose: () => void }): ReactNode {
  return (
    <Button quiet small square aria-label="Close the notice" onClick={onClose}>
      <Icon name="close" size={14} />
    </Button>
  );
}
