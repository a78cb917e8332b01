/**
 * Thousands of narrow slices per row: a line of pixels per row, filled in memory and stretched to
 * the height of the row.
 */

const ALPHA_SHIFT = 24;

/** Lines of device pixels in memory; colours as from `packed`. */
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

  clear(row: number, from: number, to: number): void {
    const at = row * this.widthPx;
    this.pixels.fill(0, at + Math.max(0, from), at + Math.min(this.widthPx, to));
  }

  /** Fills a range of pixels; at one pixel the more opaque colour stays. */
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

interface Box {
  readonly x: number;
  readonly y: number;
  readonly widthPx: number;
  readonly heightPx: number;
}

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
    // The image shares the bytes; it is created again only when its size changes.
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

  draw(target: CanvasRenderingContext2D, row: number, { x, y, widthPx, heightPx }: Box): void {
    target.drawImage(this.scratch, 0, row, this.scratch.width, 1, x, y, widthPx, heightPx);
  }
}
