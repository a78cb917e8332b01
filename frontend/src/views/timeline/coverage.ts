/** How busy some tracks were over the whole recording, pixel by pixel: the busiest of them. */
import { lengthOf, perPx } from '../../canvas/viewport';
import type { Segment } from './tile_store';
import { levelOf, PX_PARTS, tileNs, tilesOf } from './tiles';
import type { Viewer } from './viewer';

/** Adds for how much of each pixel slices of a track's first row ran. */
export function addSlices(
  sums: Float32Array,
  { tile }: Pick<Segment, 'tile'>,
  track: number,
  pxPerNs: number,
): void {
  const span = tile.rows.get(track)?.[0];
  if (!span) return;
  const { x, width, busy } = tile.slices;
  const partNs = 2 ** tile.level / PX_PARTS;
  const startNs = tile.tile * tileNs(tile.level);
  for (let at = span.from; at < span.to; at += 1) {
    const from = (startNs + (x[at] ?? 0) * partNs) * pxPerNs;
    const to = from + (width[at] ?? 0) * partNs * pxPerNs;
    const share = (busy[at] ?? 255) / 255;
    for (let px = Math.floor(from); px < Math.min(to, sums.length); px += 1) {
      const filled = Math.min(px + 1, to) - Math.max(px, from);
      sums[px] = Math.min(1, (sums[px] ?? 0) + filled * share);
    }
  }
}

export class Coverage {
  /** By pixel, 0 to 1. */
  shares = new Float32Array(0);
  private isComplete = false;

  constructor(
    private readonly viewer: Viewer,
    private readonly tracks: readonly number[],
  ) {}

  /** Works them out anew where there is something new; true where it did. */
  update(widthPx: number): boolean {
    const width = Math.round(widthPx);
    if (this.isComplete && this.shares.length === width) return false;
    this.isComplete = true;
    this.shares = new Float32Array(width);
    for (const track of this.tracks) {
      // Streams run side by side: the device is at least as busy as the busiest.
      this.of(track, width).forEach((share, px) => {
        this.shares[px] = Math.max(this.shares[px] ?? 0, share);
      });
    }
    return true;
  }

  private of(track: number, width: number): Float32Array {
    const { bounds, store } = this.viewer;
    const sums = new Float32Array(width);
    const level = levelOf(perPx(bounds, width));
    const { first, last } = tilesOf(level, bounds);
    for (let tile = first; tile <= last; tile += 1) {
      const [segment, ...others] = store.segments(track, level, tile);
      this.isComplete &&= segment?.isExact === true && others.length === 0;
      if (segment?.isExact) addSlices(sums, segment, track, width / lengthOf(bounds));
    }
    return sums;
  }
}
