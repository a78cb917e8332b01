/** The value of one of the page's tokens, for what draws on a canvas. */
export function cssVariable(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
