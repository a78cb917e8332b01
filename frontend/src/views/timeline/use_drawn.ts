import { useEffect } from 'react';
import type { Viewer } from './viewer';

/** Draws a canvas whenever the view moves. */
export function useDrawn(viewer: Viewer, redraw: () => void): void {
  useEffect(() => viewer.onDraw(redraw), [viewer, redraw]);
}
