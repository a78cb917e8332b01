/** Text that fits a width, cut with `…`; letter widths are measured once per font. */

type Measure = (text: string) => number;

const ASCII = 128;
const ELLIPSIS = '…';

/** Measures by the sum of letter widths: fast, and at most a kerning pair too small. */
export class TextFitter {
  private readonly ascii = new Float32Array(ASCII);
  private readonly others = new Map<string, number>();
  private readonly ellipsisPx: number;

  constructor(private readonly measure: Measure) {
    for (let code = 32; code < ASCII; code += 1) {
      this.ascii[code] = measure(String.fromCharCode(code));
    }
    this.ellipsisPx = measure(ELLIPSIS);
  }

  private letterPx(text: string, at: number): number {
    const code = text.charCodeAt(at);
    if (code < ASCII) return this.ascii[code] ?? 0;
    const letter = text.charAt(at);
    let width = this.others.get(letter);
    if (width === undefined) {
      width = this.measure(letter);
      this.others.set(letter, width);
    }
    return width;
  }

  widthPx(text: string): number {
    let sum = 0;
    for (let at = 0; at < text.length; at += 1) sum += this.letterPx(text, at);
    return sum;
  }

  /** The text, its start with `…`, or an empty string if two letters do not fit. */
  fit(text: string, mostPx: number): string {
    let sum = 0;
    let fitting = 0;
    for (let at = 0; at < text.length; at += 1) {
      sum += this.letterPx(text, at);
      if (sum <= mostPx - this.ellipsisPx) fitting = at + 1;
      if (sum > mostPx) return fitting < 2 ? '' : `${whole(text, fitting)}${ELLIPSIS}`;
    }
    return text;
  }
}

/** The first letters of a text, without splitting a surrogate pair. */
function whole(text: string, length: number): string {
  const last = text.charCodeAt(length - 1);
  const isTorn = last >= 0xd800 && last <= 0xdbff;
  return text.slice(0, isTorn ? length - 1 : length);
}

const fitters = new Map<string, TextFitter>();

/** The fitter of a font; it measures with the first context. */
export function fitterOf(context: CanvasRenderingContext2D, font: string): TextFitter {
  let fitter = fitters.get(font);
  if (!fitter) {
    fitter = new TextFitter((text) => {
      const before = context.font;
      context.font = font;
      const { width } = context.measureText(text);
      context.font = before;
      return width;
    });
    fitters.set(font, fitter);
  }
  return fitter;
}
