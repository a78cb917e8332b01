/** Packed colours of slices: a shade of the colour of the category, by name. */
import { packed, SHADES, shade, shadeNumber, type Theme } from '../../canvas/colours';
import { colourId } from '../../core/colour';
import type { SliceCategory } from './wire';

const OPAQUE = 0xff000000;
const RGB = 0x00ffffff;
/** Opacity of slices that a search does not match. */
const DIM_ALPHA = 46;
/** Opacity of a nearly idle pixel. */
const LEAST_ALPHA = 96;

export class Palette {
  private readonly byTheme: Readonly<Record<Theme, Uint32Array>>;
  private shades = new Uint8Array(0);
  private readonly isDrawn: Uint8Array;
  /** Number of categories drawn so far. */
  drawnCount = 0;

  constructor(private readonly categories: readonly SliceCategory[]) {
    this.isDrawn = new Uint8Array(categories.length);
    this.byTheme = { light: this.packedFor('light'), dark: this.packedFor('dark') };
  }

  private packedFor(theme: Theme): Uint32Array {
    return Uint32Array.from({ length: this.categories.length * SHADES }, (_, at) => {
      const category = this.categories[Math.floor(at / SHADES)]?.id ?? 'other';
      return packed(shade(colourId(category), at % SHADES, theme));
    });
  }

  /** Until names arrive, a category has one shade. */
  named(names: readonly string[]): void {
    this.shades = Uint8Array.from(names, shadeNumber);
  }

  colour(theme: Theme, category: number, name: number): number {
    if (this.isDrawn[category] === 0) {
      this.isDrawn[category] = 1;
      this.drawnCount += 1;
    }
    return this.byTheme[theme][category * SHADES + (this.shades[name] ?? 0)] ?? OPAQUE;
  }

  /** The categories drawn so far, for the legend. */
  drawn(): SliceCategory[] {
    return this.categories.filter((_, at) => this.isDrawn[at] === 1);
  }
}

/** A colour with the opacity of a pixel that was busy to a degree (255 is fully). */
export const thinned = (colour: number, busy: number): number =>
  ((colour & RGB) | ((LEAST_ALPHA + (busy * (255 - LEAST_ALPHA)) / 255) << 24)) >>> 0;

export const dimmed = (colour: number): number => ((colour & RGB) | (DIM_ALPHA << 24)) >>> 0;
