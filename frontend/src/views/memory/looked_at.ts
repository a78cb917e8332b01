/** What of the curve is looked at just now: an allocation's beginning and end. Pure. */
import type { MemoryAllocations } from '../../api/types.gen';
import type { Spot } from '../../charts/time_series';
import { MEMORY_COLOURS } from '../../core/colour';
import { bytes } from '../../core/format';
import { cellOf } from '../../widgets/table/rows';

/** Where a row's allocation and release are on the curve; what was not recorded is not there. */
export function spotsOf(table: MemoryAllocations, at: number): Spot[] {
  const value = (key: string): number | null => {
    const found = cellOf(table, key, at);
    return typeof found === 'number' ? found : null;
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
