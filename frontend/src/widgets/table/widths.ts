/** Column widths: by content, or set by the user in local storage. */
import { useCallback, useState } from 'react';
import type { Column } from '../../api/types.gen';
import { isNumeric } from '../../core/units';
import { readChoice, writeChoice } from '../../host/choice';

const NAME_PX = 230;
const TEXT_PX = 180;
const NUMBER_PX = 84;
/** Digits and the bar. */
const SHARE_PX = 118;
/** Longer labels are cut; the tooltip has them. */
const MOST_PX = 180;
/** Letter widths of labels, and the space next to them. */
const LETTERS: readonly (readonly [RegExp, number])[] = [
  [/[mwMW]/, 12],
  [/[fijlrtI/ ().]/, 5.2],
  [/[A-Z]/, 9.2],
];
const LETTER_PX = 8;
const BESIDE_PX = 33;
/** Columns with short text. */
const SHORT_PX = 104;
const SHORT: ReadonlySet<string> = new Set([
  'grid',
  'block',
  'streams',
  'stream',
  'devices',
  'kind',
  'uses_matrix_unit',
  'data_type',
  'correlation',
  'device',
  'event',
  'number',
  'parent',
  'rank',
  'sequence_number',
  'span',
  'step',
  'thread',
]);
/** Columns with long text. */
const LONG_PX = 320;
const LONG: ReadonlySet<string> = new Set(['stack', 'call_stack']);
/** A bar to both sides, and the number. */
const DELTA_PX = 170;
const LEAST_PX = 56;
const WIDEST_PX = 1600;

export type Widths = Readonly<Record<string, number>>;

function labelWidth(label: string): number {
  const letterPx = (letter: string): number =>
    LETTERS.find(([kind]) => kind.test(letter))?.[1] ?? LETTER_PX;
  return [...label].reduce((sum, letter) => sum + letterPx(letter), BESIDE_PX);
}

function leastWidth({ key, unit }: Column): number {
  if (key.startsWith('is_')) return NUMBER_PX;
  if (!isNumeric(unit)) return SHORT.has(key) ? SHORT_PX : TEXT_PX;
  return unit === 'share' ? SHARE_PX : NUMBER_PX;
}

/** The default width by unit; the first column takes the remaining width. */
export function usualWidth(column: Column, at: number): number {
  if (at === 0) return NAME_PX;
  if (LONG.has(column.key)) return LONG_PX;
  if (column.key === 'delta') return DELTA_PX;
  return Math.max(leastWidth(column), Math.min(MOST_PX, labelWidth(column.label)));
}

export const fittingWidth = (px: number): number =>
  Math.round(Math.min(WIDEST_PX, Math.max(LEAST_PX, px)));

const choiceOf = (name: string): string => `widths.${name}`;

function stored(name: string): Widths {
  try {
    const value: unknown = JSON.parse(readChoice(choiceOf(name)) ?? '{}');
    if (typeof value !== 'object' || value === null) return {};
    return Object.fromEntries(
      Object.entries(value).filter((pair): pair is [string, number] => Number.isFinite(pair[1])),
    );
  } catch {
    return {};
  }
}

export interface ColumnWidths {
  readonly widths: Widths;
  /** Null resets the width. */
  readonly resize: (key: string, px: number | null) => void;
}

export function useColumnWidths(name: string): ColumnWidths {
  const [widths, setWidths] = useState(() => stored(name));
  const resize = useCallback(
    (key: string, px: number | null) =>
      setWidths((present) => {
        const { [key]: _, ...others } = present;
        const next = px === null ? others : { ...others, [key]: fittingWidth(px) };
        writeChoice(choiceOf(name), Object.keys(next).length > 0 ? JSON.stringify(next) : null);
        return next;
      }),
    [name],
  );
  return { widths, resize };
}
