/** Words that fit: cut at the end, with `…`. Widths of letters are measured once a font. */

type Measure = (text: string) => number;

const ASCII = 128;
const ELLIPSIS = '…';

/** Measures by the sum of letters' widths, which is quick and never too small by more than a kerning pair. */
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

  /** All of the text, or its beginning and `…`; nothing where not even two letters fit. */
  fit(text: string, mostPx: number): string {
    let sum = 0;
    let kept = 0;
    for (let at = 0; at < text.length; at += 1) {
      sum += this.letterPx(text, at);
      if (sum <= mostPx - this.ellipsisPx) kept = at + 1;
      if (sum > mostPx) return kept < 2 ? '' : `${whole(text, kept)}${ELLIPSIS}`;
    }
    return text;
  }
}

/** The first letters of a text; a letter of two units is not torn apart. */
function whole(text: string, length: number): string {
  const last = text.charCodeAt(length - 1);
  const isTorn = last >= 0xd800 && last <= 0xdbff;
  return text.slice(0, isTorn ? length - 1 : length);
}

const fitters = new Map<string, TextFitter>();

/** The fitter for a font; it measures with the context that first asks. */
export function fitterOf(context: CanvasRenderingContext2D, font: string): TextFitter {
  let found = fitters.get(font);
  if (!found) {
    found = new TextFitter((text) => {
      const before = context.font;
      context.font = font;
      const { width } = context.measureText(text);
      context.font = before;
      return width;
    });
    fitters.set(font, found);
  }
  return found;
}
