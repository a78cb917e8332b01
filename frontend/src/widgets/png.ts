/**
 * A chart as a picture: canvases, SVGs, boxes and text, below a title and above a legend. Loaded
 * on demand.
 */
import { downloadBlob } from '../host/download';

export interface LegendEntry {
  readonly label: string;
  /** As in CSS. */
  readonly colour: string;
}

export interface Picture {
  readonly element: HTMLElement;
  readonly title: string;
  /** The trace and the filter. */
  readonly subtitle?: string | undefined;
  readonly legend?: readonly LegendEntry[] | undefined;
}

/** Pixels per CSS pixel. */
const SCALE = 2;
const MARGIN = 20;
const LEGEND_LINE = 22;
/** The size limit of browsers. */
const LONGEST = 16_000;

type Ink = CanvasRenderingContext2D;

interface Origin {
  readonly x: number;
  readonly y: number;
}

const isClear = (colour: string): boolean =>
  colour === 'transparent' || /,\s*0\)$/.test(colour) || /\/\s*0\)$/.test(colour);

function isShown(style: CSSStyleDeclaration, box: DOMRect): boolean {
  return style.visibility !== 'hidden' && style.opacity !== '0' && box.width > 0 && box.height > 0;
}

export interface Stop {
  readonly colour: string;
  /** 0 to 1. */
  readonly at: number;
}

const GRADIENT = /^linear-gradient\((?:(90deg|to right), )?(.*)\)$/;
const STOP = /((?:rgba?|color|oklab|oklch|hsla?)\([^)]*\)|#[0-9a-f]+|[a-z]+)(?: ([\d.]+)%)?/gi;

/** The stops of a linear gradient in computed style; null for other images. */
export function gradientOf(image: string): { isAcross: boolean; stops: Stop[] } | null {
  const match = GRADIENT.exec(image);
  if (!match) return null;
  const parts = [...(match[2] ?? '').matchAll(STOP)];
  const last = Math.max(1, parts.length - 1);
  const stops = parts.map(([, colour = '', percent], index) => ({
    colour,
    at: percent === undefined ? index / last : Math.min(1, Number(percent) / 100),
  }));
  return stops.length < 2 ? null : { isAcross: match[1] !== undefined, stops };
}

/** The fill of a box: a gradient, a colour, or none. */
function fillOf(ink: Ink, style: CSSStyleDeclaration, at: DOMRect): CanvasGradient | string | null {
  const match = gradientOf(style.backgroundImage);
  if (!match) return isClear(style.backgroundColor) ? null : style.backgroundColor;
  const [right, bottom] = match.isAcross ? [at.right, at.y] : [at.x, at.bottom];
  const gradient = ink.createLinearGradient(at.x, at.y, right, bottom);
  for (const stop of match.stops) gradient.addColorStop(stop.at, stop.colour);
  return gradient;
}

function drawBox(ink: Ink, style: CSSStyleDeclaration, at: DOMRect): void {
  const radius = Number.parseFloat(style.borderTopLeftRadius) || 0;
  const fill = fillOf(ink, style, at);
  const width = Number.parseFloat(style.borderTopWidth) || 0;
  const hasBorder = width > 0 && style.borderTopStyle !== 'none' && !isClear(style.borderTopColor);
  if (fill === null && !hasBorder) return;
  ink.beginPath();
  ink.roundRect(at.x, at.y, at.width, at.height, Math.min(radius, at.width / 2, at.height / 2));
  if (fill !== null) {
    ink.fillStyle = fill;
    ink.fill();
  }
  if (hasBorder) {
    ink.lineWidth = width;
    ink.strokeStyle = style.borderTopColor;
    ink.stroke();
  }
}

const INLINED = [
  'fill',
  'fill-opacity',
  'stroke',
  'stroke-width',
  'stroke-dasharray',
  'stroke-linecap',
  'stroke-linejoin',
  'stroke-opacity',
  'opacity',
  'font-family',
  'font-size',
  'font-weight',
  'text-anchor',
  'dominant-baseline',
  'color',
] as const;

/** An SVG with its computed styles inlined. */
export function standalone(svg: SVGSVGElement): string {
  const copy = svg.cloneNode(true) as SVGSVGElement;
  const originals = [svg, ...svg.querySelectorAll<SVGElement>('*')];
  const copies = [copy, ...copy.querySelectorAll<SVGElement>('*')];
  originals.forEach((original, at) => {
    const style = getComputedStyle(original);
    const into = copies[at];
    for (const name of INLINED) {
      const value = style.getPropertyValue(name);
      if (value !== '') into?.style.setProperty(name, value);
    }
  });
  const box = svg.getBoundingClientRect();
  copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg');
  copy.setAttribute('width', String(box.width));
  copy.setAttribute('height', String(box.height));
  return new XMLSerializer().serializeToString(copy);
}

async function drawSvg(ink: Ink, svg: SVGSVGElement, at: DOMRect): Promise<void> {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(standalone(svg))}`;
  await image.decode();
  ink.drawImage(image, at.x, at.y, at.width, at.height);
}

/** Draws the text; each line is a rectangle of the range. */
function drawText(ink: Ink, node: Text, origin: Origin): void {
  const parent = node.parentElement;
  const words = node.data.replaceAll(/\s+/g, ' ').trim();
  if (!parent || words === '') return;
  const range = document.createRange();
  range.selectNodeContents(node);
  const box = range.getBoundingClientRect();
  const style = getComputedStyle(parent);
  if (!isShown(style, box) || style.clipPath !== 'none') return;
  ink.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
  ink.fillStyle = style.color;
  ink.textBaseline = 'middle';
  ink.fillText(words, box.x - origin.x, box.y - origin.y + box.height / 2, box.width + 1);
}

/** Controls are not drawn. */
const LEFT_OUT = 'details, .button, input, select, .visually-hidden';

async function drawElement(ink: Ink, element: Element, origin: Origin): Promise<void> {
  if (element.matches(LEFT_OUT)) return;
  const box = element.getBoundingClientRect();
  const style = getComputedStyle(element);
  if (style.display === 'none' || style.clipPath !== 'none' || !isShown(style, box)) return;
  const at = new DOMRect(box.x - origin.x, box.y - origin.y, box.width, box.height);
  if (element instanceof HTMLCanvasElement) {
    drawBox(ink, style, at);
    if (element.width > 0 && element.height > 0)
      ink.drawImage(element, at.x, at.y, at.width, at.height);
    return;
  }
  if (element instanceof SVGSVGElement) {
    await drawSvg(ink, element, at);
    return;
  }
  drawBox(ink, style, at);
  ink.save();
  if (style.overflow !== 'visible') {
    ink.beginPath();
    ink.rect(at.x, at.y, at.width, at.height);
    ink.clip();
  }
  for (const child of element.childNodes) {
    if (child instanceof Element) await drawElement(ink, child, origin);
    else if (child instanceof Text) drawText(ink, child, origin);
  }
  ink.restore();
}

export interface PlacedEntry extends LegendEntry {
  readonly x: number;
  readonly line: number;
}

/** The legend in lines that fit the width. */
export function laidOut(
  legend: readonly LegendEntry[],
  width: number,
  widthOf: (label: string) => number,
): PlacedEntry[] {
  let x = 0;
  let line = 0;
  return legend.map((entry) => {
    const needed = 16 + widthOf(entry.label) + 18;
    if (x > 0 && x + needed > width) {
      x = 0;
      line += 1;
    }
    const placed = { ...entry, x, line };
    x += needed;
    return placed;
  });
}

interface Colours {
  readonly surface: string;
  readonly text: string;
  readonly muted: string;
  readonly font: string;
}

function coloursOf(element: HTMLElement): Colours {
  const style = getComputedStyle(element);
  const of = (name: string): string => style.getPropertyValue(name).trim();
  return {
    surface: of('--surface') || '#ffffff',
    text: of('--text') || '#000000',
    muted: of('--muted') || '#555555',
    font: style.fontFamily || 'sans-serif',
  };
}

function drawLegend(
  ink: Ink,
  entries: readonly PlacedEntry[],
  top: number,
  colours: Colours,
): void {
  for (const { label, colour, x, line } of entries) {
    const middle = top + line * LEGEND_LINE + LEGEND_LINE / 2;
    ink.fillStyle = colour;
    ink.fillRect(MARGIN + x, middle - 5, 10, 10);
    ink.fillStyle = colours.text;
    ink.font = `12px ${colours.font}`;
    ink.fillText(label, MARGIN + x + 16, middle);
  }
}

function inkOf(canvas: HTMLCanvasElement): Ink {
  const ink = canvas.getContext('2d');
  if (!ink) throw new Error('The browser has no canvas.');
  return ink;
}

export async function paint(picture: Picture): Promise<HTMLCanvasElement> {
  const { element, title, subtitle = '', legend = [] } = picture;
  const box = element.getBoundingClientRect();
  const colours = coloursOf(element);
  const canvas = document.createElement('canvas');
  const ink = inkOf(canvas);
  ink.font = `12px ${colours.font}`;
  const entries = laidOut(legend, box.width, (label) => ink.measureText(label).width);
  const head = subtitle === '' ? 34 : 54;
  const legendLines = entries.length === 0 ? 0 : (entries.at(-1)?.line ?? 0) + 1;
  const width = box.width + 2 * MARGIN;
  const height = head + box.height + legendLines * LEGEND_LINE + 2 * MARGIN;
  const scale = Math.min(SCALE, LONGEST / width, LONGEST / height);
  canvas.width = Math.ceil(width * scale);
  canvas.height = Math.ceil(height * scale);
  ink.scale(scale, scale);
  ink.fillStyle = colours.surface;
  ink.fillRect(0, 0, width, height);
  ink.textBaseline = 'middle';
  ink.fillStyle = colours.text;
  ink.font = `600 15px ${colours.font}`;
  ink.fillText(title, MARGIN, MARGIN + 8, box.width);
  ink.fillStyle = colours.muted;
  ink.font = `12.5px ${colours.font}`;
  ink.fillText(subtitle, MARGIN, MARGIN + 30, box.width);
  ink.save();
  ink.translate(MARGIN, MARGIN + head - 12);
  await drawElement(ink, element, { x: box.x, y: box.y });
  ink.restore();
  ink.textBaseline = 'middle';
  drawLegend(ink, entries, MARGIN + head - 12 + box.height + 10, colours);
  return canvas;
}

/** Downloads the picture. */
export async function savePng(picture: Picture, name: string): Promise<void> {
  const canvas = await paint(picture);
  const blob = await new Promise<Blob | null>((done) => canvas.toBlob(done, 'image/png'));
  if (!blob) throw new Error('The browser could not create the picture.');
  downloadBlob(name, blob);
}
