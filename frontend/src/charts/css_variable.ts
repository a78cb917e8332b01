/** The value of a CSS variable, for drawings on a canvas. */
export function cssVariable(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
