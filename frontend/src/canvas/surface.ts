/**
 * A canvas that is drawn at most once per frame, at the display's resolution, and again on resize
 * and change of theme.
 */
import { useEffect, useRef } from 'react';
import { themeStore } from '../host/theme';
import type { Theme } from './colours';

/** The input of a drawing; lengths are CSS pixels, and the context is scaled to them. */
export interface Frame {
  readonly context: CanvasRenderingContext2D;
  readonly widthPx: number;
  readonly heightPx: number;
  /** Device pixels per CSS pixel. */
  readonly ratio: number;
  readonly theme: Theme;
  readonly tokens: Tokens;
  readonly nowMs: number;
}

/** Returns true to request another frame, as during an animation. */
export type Paint = (frame: Frame) => boolean;

export interface Tokens {
  readonly surface: string;
  readonly background: string;
  readonly sunken: string;
  readonly hover: string;
  readonly line: string;
  readonly lineSoft: string;
  readonly lineStrong: string;
  readonly text: string;
  readonly muted: string;
  readonly accent: string;
  readonly bad: string;
  readonly warn: string;
  readonly sans: string;
}

function readTokens(): Tokens {
  const style = getComputedStyle(document.documentElement);
  const read = (name: string, otherwise: string): string =>
    style.getPropertyValue(`--${name}`).trim() || otherwise;
  return {
    surface: read('surface', '#ffffff'),
    background: read('background', '#f5f6f8'),
    sunken: read('sunken', '#f6f7f9'),
    hover: read('hover', '#eef1f6'),
    line: read('line', '#dfe3e9'),
    lineSoft: read('line-soft', '#eceff3'),
    lineStrong: read('line-strong', '#b9c0cb'),
    text: read('text', '#161b24'),
    muted: read('muted', '#586273'),
    accent: read('accent', '#2f62d9'),
    bad: read('bad', '#c02c22'),
    warn: read('warn', '#8f5600'),
    sans: read('sans', 'sans-serif').replaceAll(/\s+/g, ' '),
  };
}

export class Surface {
  private readonly context: CanvasRenderingContext2D | null;
  private readonly observer: ResizeObserver;
  private readonly leaveTheme: () => void;
  private tokens = readTokens();
  private frame = 0;
  private widthPx = 0;
  private heightPx = 0;
  private ratio = 1;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly paint: Paint,
  ) {
    this.context = canvas.getContext('2d');
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(canvas);
    this.leaveTheme = themeStore.subscribe(() => {
      this.tokens = readTokens();
      this.request();
    });
    this.resize();
  }

  /** Draws in the next frame, once for any number of calls. */
  request = (): void => {
    if (this.frame === 0) this.frame = requestAnimationFrame(this.draw);
  };

  dispose(): void {
    cancelAnimationFrame(this.frame);
    this.observer.disconnect();
    this.leaveTheme();
  }

  private resize(): void {
    this.widthPx = this.canvas.clientWidth;
    this.heightPx = this.canvas.clientHeight;
    this.request();
  }

  /** Setting the pixel size clears the canvas, so this runs just before drawing. */
  private fitPixels(): void {
    this.ratio = window.devicePixelRatio || 1;
    const [width, height] = [this.widthPx, this.heightPx].map((px) => Math.round(px * this.ratio));
    if (this.canvas.width !== width) this.canvas.width = width ?? 0;
    if (this.canvas.height !== height) this.canvas.height = height ?? 0;
  }

  private draw = (nowMs: number): void => {
    this.frame = 0;
    if (!this.context || this.widthPx === 0 || this.heightPx === 0) return;
    this.fitPixels();
    const { context, ratio, widthPx, heightPx, tokens } = this;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, widthPx, heightPx);
    const theme = themeStore.current();
    if (this.paint({ context, widthPx, heightPx, ratio, theme, tokens, nowMs })) this.request();
  };
}

export interface SurfaceHook {
  readonly canvas: React.RefObject<HTMLCanvasElement | null>;
  readonly redraw: () => void;
}

/**
 * The surface of a canvas for the lifetime of the component. `paint` may close over props: each
 * frame uses the latest.
 */
export function useSurface(paint: Paint): SurfaceHook {
  const canvas = useRef<HTMLCanvasElement>(null);
  const surface = useRef<Surface | null>(null);
  const latest = useRef(paint);
  latest.current = paint;
  useEffect(() => {
    if (!canvas.current) return undefined;
    const made = new Surface(canvas.current, (frame) => latest.current(frame));
    surface.current = made;
    return () => {
      made.dispose();
      surface.current = null;
    };
  }, []);
  useEffect(() => surface.current?.request());
  const redraw = useRef(() => surface.current?.request()).current;
  return { canvas, redraw };
}
