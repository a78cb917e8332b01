/** A part of the page as a PNG file, below a title and above a legend. Loaded on demand. */
import { domToBlob, domToCanvas } from 'modern-screenshot';
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
/** The size limit of browsers. */
const LONGEST = 16_000;
/** Controls are not drawn. */
const LEFT_OUT = 'details, .button, input, select, .visually-hidden';

const isDrawn = (node: Node): boolean => !(node instanceof Element && node.matches(LEFT_OUT));

function child<K extends keyof HTMLElementTagNameMap>(
  parent: HTMLElement,
  tag: K,
  css: string,
  text = '',
): HTMLElementTagNameMap[K] {
  const element = parent.appendChild(document.createElement(tag));
  element.style.cssText = css;
  element.textContent = text;
  return element;
}

/** The title, the drawn element and the legend, out of view in the document. */
function framed({ title, subtitle = '', legend = [] }: Picture, drawn: HTMLElement): HTMLElement {
  const frame = child(
    document.body,
    'div',
    'position: fixed; left: -100000px; padding: 20px; background: var(--surface)',
  );
  child(frame, 'h2', 'margin: 0 0 6px; font-size: 15px', title);
  if (subtitle !== '') child(frame, 'p', 'margin: 0 0 6px; color: var(--muted)', subtitle);
  frame.append(drawn);
  const list = child(frame, 'p', `display: flex; flex-wrap: wrap; width: ${drawn.style.width}`);
  for (const { label, colour } of legend) {
    const entry = child(list, 'span', 'display: flex; align-items: center; margin: 8px 18px 0 0');
    child(entry, 'i', `width: 10px; height: 10px; margin-right: 6px; background: ${colour}`);
    entry.append(label);
  }
  return frame;
}

/** Downloads the picture. */
export async function savePng(picture: Picture, name: string): Promise<void> {
  const { width, height } = picture.element.getBoundingClientRect();
  const scale = Math.min(SCALE, LONGEST / (width + 40), LONGEST / (height + 200));
  const options = { scale, font: false, features: { restoreScrollPosition: true } } as const;
  const drawn = await domToCanvas(picture.element, { ...options, width, height, filter: isDrawn });
  Object.assign(drawn.style, { display: 'block', width: `${width}px`, height: `${height}px` });
  const frame = framed(picture, drawn);
  try {
    downloadBlob(name, await domToBlob(frame, { ...options, style: { left: '0' } }));
  } finally {
    frame.remove();
  }
}
