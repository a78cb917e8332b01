import { type PointerEvent, useState } from 'react';

/** Shorter drags are clicks. */
const LEAST_DRAG_PX = 5;

type Handler = (event: PointerEvent<HTMLElement>) => void;

interface Options {
  /** Receives the position of a click. */
  readonly onClick?: ((px: number) => void) | undefined;
  /** Receives the ends of a drag. */
  readonly onDrag?: ((lowPx: number, highPx: number) => void) | undefined;
}

interface Dragging {
  /** The ends of the drag that is going on. */
  readonly drag: readonly [lowPx: number, highPx: number] | null;
  readonly handlers: Readonly<
    Record<'onPointerDown' | 'onPointerMove' | 'onPointerUp' | 'onPointerCancel', Handler>
  >;
}

/** Horizontal drags and clicks on an element. */
export function useDrag({ onClick, onDrag }: Options): Dragging {
  const [ends, setEnds] = useState<readonly [number, number] | null>(null);
  const pxOf: (event: PointerEvent<HTMLElement>) => number = (event) =>
    event.clientX - event.currentTarget.getBoundingClientRect().left;
  const inOrder = (a: number, b: number): readonly [number, number] => (a < b ? [a, b] : [b, a]);
  const isDrag = ([from, to]: readonly [number, number]): boolean =>
    Math.abs(to - from) >= LEAST_DRAG_PX;
  return {
    drag: ends && onDrag && isDrag(ends) ? inOrder(...ends) : null,
    handlers: {
      onPointerDown: (event) => {
        if (event.button !== 0 || !(onClick || onDrag)) return;
        event.currentTarget.setPointerCapture?.(event.pointerId);
        setEnds([pxOf(event), pxOf(event)]);
      },
      onPointerMove: (event) => {
        if (ends) setEnds([ends[0], pxOf(event)]);
      },
      onPointerUp: (event) => {
        if (!ends) return;
        const done = [ends[0], pxOf(event)] as const;
        setEnds(null);
        if (isDrag(done) && onDrag) onDrag(...inOrder(...done));
        else onClick?.(done[1]);
      },
      onPointerCancel: () => setEnds(null),
    },
  };
}
