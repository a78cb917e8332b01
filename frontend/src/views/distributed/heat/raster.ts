/** A heat map's cells as pixels: where several cells share one, the worst of them is seen. Pure. */
import { figure, type Grid, type Line, type Norm, type Order } from './grid';
import { type Scale, shadeAt } from './scale';

export interface Cells {
  readonly grid: Grid;
  readonly lines: readonly Line[];
  readonly order: Order;
  /** Rank to the place of its process group, in the order by group. */
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

/** What is worst in a block of cells; NaN: nothing of it is known. */
function worst(cells: Cells, lines: Block, columns: Block): number {
  const { grid, norm, scale, isHighBad } = cells;
  let found = Number.NaN;
  let weight = Number.NEGATIVE_INFINITY;
  for (let at = lines[0]; at < lines[1]; at += 1) {
    const line = cells.lines[at];
    if (line?.kind !== 'rank') continue;
    for (let column = columns[0]; column < columns[1]; column += 1) {
      const value = figure(grid, line.row, column, norm);
      const sign = isHighBad ? value : -value;
      const own = scale.isDiverging ? Math.abs(value) : sign;
      if (own > weight) [found, weight] = [value, own];
    }
  }
  return found;
}

/** From where to where each pixel goes: at least one line a pixel. */
function blocks(from: number, to: number, pixels: number): Block[] {
  const each = (to - from) / pixels;
  return Array.from({ length: pixels }, (_, at) => {
    const first = Math.floor(from + at * each);
    return [first, Math.max(first + 1, Math.floor(from + (at + 1) * each))];
  });
}

export interface Raster extends Size {
  /** Packed colours; 0 where nothing is known. */
  readonly pixels: Uint32Array<ArrayBuffer>;
}

export interface Asked {
  readonly from: number;
  readonly to: number;
  readonly size: Size;
  readonly colours: Uint32Array;
}

/** Paints the lines from one to another in as many pixels as they need, and no more than there are. */
export function raster(cells: Cells, { from, to, size, colours }: Asked): Raster {
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
