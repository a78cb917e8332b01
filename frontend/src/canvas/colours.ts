/**
 * Fills for a canvas: one hue per category (`core/colour.ts`), shades by name. The light theme has
 * deep fills with white text, the dark theme light fills with dark text: text contrast is at least
 * 4.5:1, contrast with the surface at least 3:1.
 */
import { colourOf } from '../core/colour';

export type Theme = 'light' | 'dark';
type Rgb = readonly [number, number, number];

/** The text colour on a fill. */
export const INK: Readonly<Record<Theme, string>> = { light: '#ffffff', dark: '#0b0e13' };

const LEAST_CONTRAST = 4.6;
const LIGHTNESSES = 4;
const HUES = [0, 9, -9] as const;
export const SHADES = LIGHTNESSES * HUES.length;
const SHADE_STEP = 0.075;

function rgbOf(hex: string): Rgb {
  const value = Number.parseInt(hex.slice(1), 16);
  return [(value >> 16) & 255, (value >> 8) & 255, value & 255];
}

const hexOf = (rgb: Rgb): string =>
  `#${rgb.map((part) => Math.round(part).toString(16).padStart(2, '0')).join('')}`;

const mixed = (a: Rgb, b: Rgb, share: number): Rgb => [
  a[0] + (b[0] - a[0]) * share,
  a[1] + (b[1] - a[1]) * share,
  a[2] + (b[2] - a[2]) * share,
];

function linear(part: number): number {
  const value = part / 255;
  return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
}

const luminance = ([r, g, b]: Rgb): number =>
  0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);

/** The ratio of WCAG 2, from 1 to 21. */
export function contrast(a: string, b: string): number {
  const [light = 0, dark = 0] = [luminance(rgbOf(a)), luminance(rgbOf(b))].sort((x, y) => y - x);
  return (light + 0.05) / (dark + 0.05);
}

/** Rotates the hue by some degrees at about the same brightness (the matrix of the SVG filter). */
function turned([r, g, b]: Rgb, degrees: number): Rgb {
  const [cos, sin] = [Math.cos((degrees * Math.PI) / 180), Math.sin((degrees * Math.PI) / 180)];
  const [lr, lg, lb] = [0.2126, 0.7152, 0.0722];
  const part = (x: number): number => Math.min(255, Math.max(0, x));
  return [
    part(
      (lr + cos * (1 - lr) - sin * lr) * r +
        (lg - cos * lg - sin * lg) * g +
        (lb - cos * lb + sin * (1 - lb)) * b,
    ),
    part(
      (lr - cos * lr + sin * 0.143) * r +
        (lg + cos * (1 - lg) + sin * 0.14) * g +
        (lb - cos * lb - sin * 0.283) * b,
    ),
    part(
      (lr - cos * lr - sin * (1 - lr)) * r +
        (lg - cos * lg + sin * lg) * g +
        (lb + cos * (1 - lb) + sin * lb) * b,
    ),
  ];
}

const FAR: Readonly<Record<Theme, Rgb>> = { light: [0, 0, 0], dark: [255, 255, 255] };

/** The colour, mixed away from the surface until text on it is readable. */
function readable(rgb: Rgb, theme: Theme): Rgb {
  for (let share = 0; share < 1; share += 0.02) {
    const candidate = mixed(rgb, FAR[theme], share);
    if (contrast(hexOf(candidate), INK[theme]) >= LEAST_CONTRAST) return candidate;
  }
  return FAR[theme];
}

/** A shade of a category's colour by number. */
export function shade(category: string, which: number, theme: Theme): string {
  const at = which % SHADES;
  const hue = HUES[at % HUES.length] ?? 0;
  const base = readable(turned(rgbOf(colourOf(category)), hue), theme);
  return hexOf(mixed(base, FAR[theme], Math.floor(at / HUES.length) * SHADE_STEP));
}

/** The shade of a name, the same in every view. */
export function shadeNumber(name: string): number {
  let value = 2166136261;
  for (let at = 0; at < name.length; at += 1)
    value = Math.imul(value ^ name.charCodeAt(at), 16777619);
  // The low bits of this hash mix poorly for names that differ in their last letter.
  return ((value ^ (value >>> 15)) >>> 0) % SHADES;
}

const cached = new Map<string, string>();

export function fillOf(category: string, name: string, theme: Theme): string {
  const which = shadeNumber(name);
  const key = `${theme} ${which} ${category}`;
  let fill = cached.get(key);
  if (fill === undefined) {
    fill = shade(category, which, theme);
    cached.set(key, fill);
  }
  return fill;
}

/** A colour as `ImageData` holds it in a little-endian `Uint32Array`: 0xAABBGGRR. */
export function packed(hex: string, alpha = 255): number {
  const [r, g, b] = rgbOf(hex);
  return ((alpha << 24) | (b << 16) | (g << 8) | r) >>> 0;
}
