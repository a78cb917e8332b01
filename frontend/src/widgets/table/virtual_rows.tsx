import { useVirtualizer } from '@tanstack/react-virtual';
import { type ReactNode, type RefObject, useEffect, useRef } from 'react';

/** Takes the space of rows out of view. */
function Spacer({ height }: { readonly height: number }): ReactNode {
  if (height <= 0) return null;
  // biome-ignore lint/a11y/noAriaHiddenOnFocusable: without a tabIndex nothing in this empty row takes the focus
  return <tr className="spacer" aria-hidden="true" style={{ height }} />;
}

/** Rows drawn beyond the visible ones, for fast scrolling. */
const OVERSCAN = 20;

interface VirtualRows {
  /** The scrolling element. */
  readonly scroller: RefObject<HTMLDivElement | null>;
  /** The indexes of the rendered rows: the visible ones and a few around them. */
  readonly indexes: readonly number[];
  readonly scrollToIndex: (index: number, options?: { readonly align: 'center' }) => void;
  /** The content of the table body: the rendered rows between spacers for the others. */
  readonly body: (row: (index: number) => ReactNode) => ReactNode;
}

/** Renders only the visible rows of a table whose rows have the same height. */
export function useVirtualRows(count: number, rowPx: number): VirtualRows {
  const scroller = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowPx,
    overscan: OVERSCAN,
    initialRect: { width: 1200, height: 700 },
  });
  useEffect(() => {
    if (rowPx > 0) virtual.measure();
  }, [rowPx, virtual]);
  const items = virtual.getVirtualItems();
  return {
    scroller,
    indexes: items.map(({ index }) => index),
    scrollToIndex: virtual.scrollToIndex,
    body: (row) => (
      <>
        <Spacer height={items[0]?.start ?? 0} />
        {items.map(({ index }) => row(index))}
        <Spacer height={virtual.getTotalSize() - (items.at(-1)?.end ?? 0)} />
      </>
    ),
  };
}
