/** The fill of a frame: the hue of its kind, shaded by name; in a comparison, its change. */
import { contrast, fillOf, INK, shade, type Theme } from '../../canvas/colours';

export interface Fill {
  readonly fill: string;
  readonly ink: string;
}

interface Ends {
  readonly less: string;
  readonly none: string;
  readonly more: string;
}

/** Ends of the scale, distinct for red–green blindness, with no change in between. */
const ENDS: Readonly<Record<Theme, Ends>> = {
  light: { less: '#1f63ad', none: '#e4e7ec', more: '#b8431a' },
  dark: { less: '#7ab3f5', none: '#2c333e', more: '#f2936a' },
};
const DARK_INK = '#000000';
const LIGHT_INK = '#ffffff';
const STEPS = 12;
/** Below 1, so that small changes are visible. */
const CURVE = 0.75;

const part = (hex: string, at: number): number => Number.parseInt(hex.slice(at, at + 2), 16);

function mixed(from: string, to: string, share: number): string {
  const parts = [1, 3, 5].map((at) =>
    Math.round(part(from, at) + (part(to, at) - part(from, at)) * share),
  );
  return `#${parts.map((value) => value.toString(16).padStart(2, '0')).join('')}`;
}

const cached = new Map<string, Fill>();

/** The fill for a change from −1 (gone) to 1 (new). */
export function changeFill(change: number, theme: Theme): Fill {
  const step = Math.round(Math.sign(change) * Math.abs(change) ** CURVE * STEPS);
  const key = `${theme}${step}`;
  let result = cached.get(key);
  if (!result) {
    const { less, none, more } = ENDS[theme];
    const fill = mixed(none, step < 0 ? less : more, Math.abs(step) / STEPS);
    const ink = contrast(fill, LIGHT_INK) > contrast(fill, DARK_INK) ? LIGHT_INK : DARK_INK;
    result = { fill, ink };
    cached.set(key, result);
  }
  return result;
}

/** The kinds of frames as categories, so that they are coloured as in the other views. */
const CATEGORIES: Readonly<Record<string, string>> = {
  user: 'python',
  python: 'other',
  operator: 'cpu',
  rest: 'no-record',
  smaller: 'no-record',
};

const categoryOf = (kind: string): string => CATEGORIES[kind] ?? kind;

export const kindFill = (kind: string, name: string, theme: Theme): Fill => ({
  fill: fillOf(categoryOf(kind), name, theme),
  ink: INK[theme],
});

/** The colour of a kind, for legends and lists. */
export const kindColour = (kind: string, theme: Theme): string => shade(categoryOf(kind), 0, theme);

export const changeColours = (theme: Theme): Ends => ENDS[theme];
