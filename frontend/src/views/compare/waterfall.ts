/** A waterfall from one mean step to another; each part begins at the end of the previous one. Pure. */
import type { Comparison, Part } from '../../api/types.gen';
import { deltaOf } from './phrases';

export interface Level {
  readonly part: Part;
  /** The step before and after the change of this part. */
  readonly from: number;
  readonly to: number;
}

export interface Waterfall {
  readonly levels: readonly Level[];
  /** The axis, which begins at zero unless all levels are far above. */
  readonly least: number;
  readonly most: number;
}

/** Above this fraction of the largest level the axis does not begin at zero. */
const FAR_ABOVE = 0.7;
const MARGIN = 0.15;

/** The levels of all parts with a value; they end at the step after. */
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

/** The rows of a category: tab, kind and search of the table. */
export interface Source {
  readonly tab: 'operators' | 'device';
  readonly kind?: string;
  readonly search?: string;
}

const COLLECTIVES =
  '/nccl|rccl|gloo|c10d|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|broadcast/';

const SOURCES: Readonly<Record<string, Source>> = {
  kernel: { tab: 'device', kind: 'kernel' },
  communication: { tab: 'device', search: COLLECTIVES },
  memcpy: { tab: 'device', kind: 'copy' },
  memset: { tab: 'device', kind: 'memory-set' },
  dataloader: { tab: 'operators', search: 'DataLoader' },
  cpu: { tab: 'operators' },
};

/** Null for a category without rows. */
export function sourceOf(category: string, hasDeviceWork: boolean): Source | null {
  const source = SOURCES[category];
  if (!source) return null;
  if (source.tab === 'operators' || hasDeviceWork) return source;
  return { tab: 'operators', ...(source.search ? { search: source.search } : {}) };
}
