import type { ReactNode } from 'react';

/** Stands for the rows out of sight, so that the scroll bar tells the truth. */
export function Spacer({ height }: { readonly height: number }): ReactNode {
  if (height <= 0) return null;
  // biome-ignore lint/a11y/noAriaHiddenOnFocusable: without a tabIndex nothing in this empty row takes the focus
  return <tr className="spacer" aria-hidden="true" style={{ height }} />;
}
