/** Sizes that people type: `4096`, `64k`, `1.5 MB`, `2 GiB`. Pure. */

const SIZE = /^\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*$/i;
const POWERS: Readonly<Record<string, number>> = { '': 0, k: 1, m: 2, g: 3, t: 4 };

/** A size in bytes; null: nothing was typed; undefined: it is no size. */
export function sizeOf(text: string): number | null | undefined {
  if (text.trim() === '') return null;
  const [, number, unit = '', binary] = SIZE.exec(text) ?? [];
  if (number === undefined) return undefined;
  return Math.round(Number(number) * (binary ? 1024 : 1000) ** (POWERS[unit.toLowerCase()] ?? 0));
}
