/**
 * Thousands of narrow slices a row: one line of pixels a row, filled in memory, put on a scratch canvas
 * at once and stretched to each row's height. Drawing a slice costs a few writes, whatever its row's height.
 */

const ALPHA_SHIFT = 24;

/** Lines of pixels in memory. Colours are as `packed` makes them; pixels are the device's. */
export class PixelRows {
  pixels = new Uint32Array(0);
  widthPx = 0;
  rows = 0;

  begin(widthPx: number, rows: number): void {
    const size = widthPx * rows;
    if (this.pixels.length < size) this.pixels = new Uint32Array(size);
    else this.pixels.fill(0, 0, size);
    this.widthPx = widthPx;
    this.rows = rows;
  }

  /** Empties a part of a row. */
  clear(row: number, from: number, to: number): void {
    const at = row * this.widthPx;
    this.pixels.fill(0, at + Math.max(0, from), at + Math.min(this.widthPx, to));
  }

  /** Fills from a pixel to another; of what is one pixel wide the stronger stays. */
  run(row: number, from: number, to: number, colour: number): void {
    const start = from < 0 ? 0 : from;
    const end = to > this.widthPx ? this.widthPx : to;
    const at = row * this.widthPx + start;
    if (end - start === 1) {
      const present = this.pixels[at] ?? 0;
      if (present >>> ALPHA_SHIFT <= colour >>> ALPHA_SHIFT) this.pixels[at] = colour;
    } else if (end > start) this.pixels.fill(colour, at, at + end - start);
  }
}

interface Place {
  readonly x: number;
  readonly y: number;
  readonly widthPx: number;
  readonly heightPx: number;
}

/** Puts lines of pixels on a canvas. */
export class StripCanvas {
  private readonly scratch = document.createElement('canvas');
  private readonly context = this.scratch.getContext('2d');
  private image: ImageData | null = null;

  put(rows: PixelRows): void {
    const { widthPx, rows: count } = rows;
    if (!this.context || widthPx === 0 || count === 0) return;
    if (this.scratch.width !== widthPx || this.scratch.height < count) {
      this.scratch.width = widthPx;
      this.scratch.height = count;
      this.image = null;
    }
    // The bytes are shared with the image, which is made anew only when its size changes.
    if (this.image?.height !== count || this.image.data.buffer !== rows.pixels.buffer) {
      const bytes = new Uint8ClampedArray(
        rows.pixels.buffer as ArrayBuffer,
        0,
        widthPx * count * 4,
      );
      this.image = new ImageData(bytes, widthPx, count);
    }
    this.context.putImageData(this.image, 0, 0);
  }

  draw(target: CanvasRenderingContext2D, row: number, { x, y, widthPx, heightPx }: Place): void {
    target.drawImage(this.scratch, 0, row, this.scratch.width, 1, x, y, widthPx, heightPx);
  }
}
