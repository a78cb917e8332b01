/** Movement through a list by keys. Pure. */
const PAGE = 10;
const STEPS: Readonly<Record<string, number>> = {
  ArrowDown: 1,
  ArrowUp: -1,
  PageDown: PAGE,
  PageUp: -PAGE,
};
const ENDS: Readonly<Record<string, number>> = {
  Home: Number.NEGATIVE_INFINITY,
  End: Number.POSITIVE_INFINITY,
};

interface ListKind {
  /** In a text box, Home and End move the cursor instead. */
  readonly isTyped?: boolean;
  /** Whether the arrows lead from one end to the other. */
  readonly isRing?: boolean;
}

/** The index that a key moves to; null for other keys, and in an empty list. */
export function movedIndex(
  key: string,
  at: number,
  length: number,
  { isTyped = false, isRing = false }: ListKind = {},
): number | null {
  const step = STEPS[key] ?? (isTyped ? undefined : ENDS[key]);
  if (step === undefined || length === 0) return null;
  if (isRing && Math.abs(step) === 1) return (at + step + length) % length;
  return Math.max(0, Math.min(length - 1, at + step));
}
