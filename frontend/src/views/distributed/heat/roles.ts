/** Which process group of a role each rank is in, to put ranks of one group beside each other. Pure. */
import type { GroupInfo } from '../../../api/types.gen';
import { rangesOf } from '../names';

export interface Roles {
  /** Those whose groups part the ranks: `TP`, `PP`, `DP`. */
  readonly roles: readonly string[];
  /** Rank to the place of its group among those of a role. */
  readonly of: (role: string) => ReadonlyMap<number, number>;
}

const NONE: ReadonlyMap<number, number> = new Map();

function ranksIn(text: string): number[] {
  return rangesOf(text).flatMap(({ first, last }) =>
    Array.from({ length: last - first + 1 }, (_, at) => first + at),
  );
}

/**
 * Groups are counted by their first rank. A role with one group parts nothing, nor does one whose groups hold fewer
 * ranks than `leastRanks`: where not all groups are told.
 */
export function rolesOf(
  groups: readonly Pick<GroupInfo, 'role' | 'ranks'>[],
  leastRanks = 0,
): Roles {
  const members = new Map<string, number[][]>();
  for (const { role, ranks: text } of groups) {
    const ranks = ranksIn(text);
    if (role === '' || ranks.length === 0) continue;
    members.set(role, [...(members.get(role) ?? []), ranks]);
  }
  const placed = new Map(
    [...members]
      .filter(([, own]) => own.length > 1 && new Set(own.flat()).size >= leastRanks)
      .map(([role, own]) => {
        // Of a rank in several groups of a role, the smallest tells most.
        const ordered = own.toSorted((a, b) => b.length - a.length || (a[0] ?? 0) - (b[0] ?? 0));
        return [role, new Map(ordered.flatMap((of, at) => of.map((rank) => [rank, at])))] as const;
      }),
  );
  return { roles: [...placed.keys()].sort(), of: (role) => placed.get(role) ?? NONE };
}
