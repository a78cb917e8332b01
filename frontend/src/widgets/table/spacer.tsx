import type { ReactNode } from 'react';

/** Takes the space of rows out of view. */
export function Spacer({ height }: { readonly height: number }): ReactNode {
  if (height <= 0) return null;
  // biome-ignore lint/a11y/noAriaHiddenOnFocusable: without a tabIndex nothing in this empty row takes the focus
  return <tr className="spacer" aria-hidden="true" style={{ height }} />;
}
