/** The part of the memory that the tabs show, and how allocations are filtered. Pure. */
import type { Narrowing } from '../../api/queries';
import type { MemoryAllocations } from '../../api/types.gen';
import type { Spot } from '../../charts/time_series_types';
import { MEMORY_COLOURS } from '../../core/colour';
import { bytes } from '../../core/format';
import type { Selection } from '../../state/selection';
import { cellOf } from '../../widgets/table/rows';

export interface MemoryScope {
  readonly selection: Selection;
  readonly device: string;
  readonly narrowing: Narrowing | null;
  /** The selected moment; null: the peak. */
  readonly moment: number | null;
}

/** The name of a table's exports: run, worker, span and device. */
export const traceNames = ({ selection, device }: MemoryScope): string[] => [
  selection.run.name,
  selection.worker.name,
  selection.span.label,
  device,
];

/** The recorded allocation and release of a row as points on the curve. */
export function spotsOf(table: MemoryAllocations, at: number): Spot[] {
  const value = (key: string): number | null => {
    const cell = cellOf(table, key, at);
    return typeof cell === 'number' ? cell : null;
  };
  const size = bytes(value('bytes') ?? 0);
  const ends = [
    { what: 'born', x: value('allocated_ns'), y: value('allocated_level_bytes') },
    { what: 'freed', x: value('freed_ns'), y: value('freed_level_bytes') },
  ] as const;
  return ends.flatMap(({ what, x, y }) =>
    x === null || y === null
      ? []
      : [
          {
            x,
            y,
            colour: MEMORY_COLOURS[what],
            label: `${size} ${what === 'born' ? 'allocated' : 'freed'}`,
          },
        ],
  );
}

const SIZE = /^\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?\s*$/i;
const POWERS: Readonly<Record<string, number>> = { '': 0, k: 1, m: 2, g: 3, t: 4 };

/** A typed size (`4096`, `64k`, `1.5 MB`, `2 GiB`) in bytes; null: empty; undefined: invalid. */
export function sizeOf(text: string): number | null | undefined {
  if (text.trim() === '') return null;
  const [, number, unit = '', binary] = SIZE.exec(text) ?? [];
  if (number === undefined) return undefined;
  return Math.round(Number(number) * (binary ? 1024 : 1000) ** (POWERS[unit.toLowerCase()] ?? 0));
}

/** A word, a quoted text, or a condition on a column that the server searches. */
const WORD = /^(?:"([^"]+)"|(?![\w-]+:(?!:))([^\s"/<>=]+))$/;
const CONDITION = /^(?:operator|op|module|function|stack):(?!:)(?:"([^"]+)"|([^\s"/<>=]+))$/;

/**
 * The text that the server can search for in operator, module or stack when it does not send all rows; null if it
 * cannot. The server may find more rows than the table then shows, never fewer.
 */
export function serverSearch(search: string): string | null {
  const match = WORD.exec(search.trim()) ?? CONDITION.exec(search.trim());
  return match?.[1] ?? match?.[2] ?? null;
}
