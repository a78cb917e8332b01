import { type RefObject, useEffect } from 'react';
import { type Paint, useSurface } from '../../canvas/surface';
import type { Viewer } from './viewer';

/** A canvas that is painted again whenever the view moves. */
export function useViewerSurface(
  viewer: Viewer,
  paint: Paint,
): RefObject<HTMLCanvasElement | null> {
  const { canvas, redraw } = useSurface(paint);
  useEffect(() => viewer.onDraw(redraw), [viewer, redraw]);
  return canvas;
}
