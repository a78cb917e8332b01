/** A waterfall from one mean step to another: each part begins where the last one ended. Pure. */
import type { Comparison, Part } from '../../api/types.gen';
import { deltaOf } from './words';

export interface Level {
  readonly part: Part;
  /** Where the step stood before this part's change, and after it. */
  readonly from: number;
  readonly to: number;
}

export interface Waterfall {
  readonly levels: readonly Level[];
  /** The axis: it begins at zero unless all levels are far above it. */
  readonly least: number;
  readonly most: number;
}

/** Below this share of the largest level the axis begins at zero. */
const FAR_ABOVE = 0.7;
const MARGIN = 0.15;

/** Parts that are nothing on both sides are left out; the levels end at the step after. */
export function waterfallOf({ step, waterfall }: Comparison): Waterfall {
  let at = step.before;
  const levels = waterfall
    .filter(({ change }) => change.before !== 0 || change.after !== 0)
    .map((part) => {
      const from = at;
      at += deltaOf(part.change);
      return { part, from, to: at };
    });
  const all = [step.before, step.after, ...levels.map(({ to }) => to)];
  const [lowest, most] = [Math.min(...all), Math.max(...all)];
  const least = lowest - MARGIN * most;
  return { levels, least: lowest > FAR_ABOVE * most ? Math.max(0, least) : 0, most };
}

/** Where the operators or kernels behind a category are: the table's tab, kind and search. */
export interface Behind {
  readonly tab: 'operators' | 'device';
  readonly kind?: string;
  readonly search?: string;
}

const COLLECTIVES =
  '/nccl|rccl|gloo|c10d|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|broadcast/';

const BEHIND: Readonly<Record<string, Behind>> = {
  kernel: { tab: 'device', kind: 'kernel' },
  communication: { tab: 'device', search: COLLECTIVES },
  memcpy: { tab: 'device', kind: 'copy' },
  memset: { tab: 'device', kind: 'memory-set' },
  dataloader: { tab: 'operators', search: 'DataLoader' },
  cpu: { tab: 'operators' },
};

/** Null where no row says what a category is made of. */
export function behind(category: string, hasDeviceWork: boolean): Behind | null {
  const found = BEHIND[category];
  if (!found) return null;
  if (found.tab === 'operators' || hasDeviceWork) return found;
  return { tab: 'operators', ...(found.search ? { search: found.search } : {}) };
}
