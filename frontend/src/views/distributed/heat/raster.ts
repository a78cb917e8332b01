/** The cells of a heat map as pixels; a pixel shows the worst of its cells. Pure. */
import { figure, type Grid, type Line, type Norm, type Order } from './grid';
import { type Scale, shadeAt } from './scale';

export interface Cells {
  readonly grid: Grid;
  readonly lines: readonly Line[];
  readonly order: Order;
  /** Rank to the position of its process group, in the order by group. */
  readonly groupOf?: ReadonlyMap<number, number>;
  readonly norm: Norm;
  readonly scale: Scale;
  readonly isHighBad: boolean;
}

export interface Size {
  readonly widthPx: number;
  readonly heightPx: number;
}

type Block = readonly [first: number, end: number];

/** The worst value in a block of cells; NaN without values. */
function worst(cells: Cells, lines: Block, columns: Block): number {
  const { grid, norm, scale, isHighBad } = cells;
  let worstValue = Number.NaN;
  let weight = Number.NEGATIVE_INFINITY;
  for (let at = lines[0]; at < lines[1]; at += 1) {
    const line = cells.lines[at];
    if (line?.kind !== 'rank') continue;
    for (let column = columns[0]; column < columns[1]; column += 1) {
      const value = figure(grid, line.row, column, norm);
      const sign = isHighBad ? value : -value;
      const badness = scale.isDiverging ? Math.abs(value) : sign;
      if (badness > weight) [worstValue, weight] = [value, badness];
    }
  }
  return worstValue;
}

/** The lines of each pixel, at least one. */
function blocks(from: number, to: number, pixels: number): Block[] {
  const linesPerPixel = (to - from) / pixels;
  return Array.from({ length: pixels }, (_, at) => {
    const first = Math.floor(from + at * linesPerPixel);
    return [first, Math.max(first + 1, Math.floor(from + (at + 1) * linesPerPixel))];
  });
}

export interface Raster extends Size {
  /** Packed colours; 0 without a value. */
  readonly pixels: Uint32Array<ArrayBuffer>;
}

export interface RasterOptions {
  readonly from: number;
  readonly to: number;
  readonly size: Size;
  readonly colours: Uint32Array;
}

/** Paints a range of lines with at most one pixel per cell. */
export function raster(cells: Cells, { from, to, size, colours }: RasterOptions): Raster {
  const widthPx = Math.max(1, Math.min(cells.grid.columns, Math.floor(size.widthPx)));
  const heightPx = Math.max(1, Math.min(to - from, Math.floor(size.heightPx)));
  const columns = blocks(0, cells.grid.columns, widthPx);
  const pixels = new Uint32Array(widthPx * heightPx);
  blocks(from, to, heightPx).forEach((lines, y) => {
    columns.forEach((block, x) => {
      const shade = shadeAt(cells.scale, worst(cells, lines, block));
      pixels[y * widthPx + x] = shade < 0 ? 0 : (colours[shade] ?? 0);
    });
  });
  return { pixels, widthPx, heightPx };
}
