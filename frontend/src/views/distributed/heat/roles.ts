/** The process group of each rank by role, to order ranks by group. Pure. */
import type { GroupInfo } from '../../../api/types.gen';
import { rangesOf } from '../ranks';

export interface Roles {
  /** Roles with several groups: `TP`, `PP`, `DP`. */
  readonly roles: readonly string[];
  /** Rank to the position of its group within a role. */
  readonly of: (role: string) => ReadonlyMap<number, number>;
}

const NONE: ReadonlyMap<number, number> = new Map();

function ranksIn(text: string): number[] {
  return rangesOf(text).flatMap(({ first, last }) =>
    Array.from({ length: last - first + 1 }, (_, at) => first + at),
  );
}

/**
 * Orders the groups of each role by first rank. Roles with one group are left out, as are roles whose groups have
 * fewer than `leastRanks` ranks, for lists of groups that are incomplete.
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
  const groupOfRank = new Map(
    [...members]
      .filter(([, groups]) => groups.length > 1 && new Set(groups.flat()).size >= leastRanks)
      .map(([role, groups]) => {
        // Of several groups with a rank, the smallest counts.
        const ordered = groups.toSorted((a, b) => b.length - a.length || (a[0] ?? 0) - (b[0] ?? 0));
        return [role, new Map(ordered.flatMap((of, at) => of.map((rank) => [rank, at])))] as const;
      }),
  );
  return { roles: [...groupOfRank.keys()].sort(), of: (role) => groupOfRank.get(role) ?? NONE };
}
