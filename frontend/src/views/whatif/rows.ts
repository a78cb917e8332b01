/** The rows of the recorded and the simulated step, for drawing. Pure. */
import type { WhatIfBlocks, WhatIfLane, WhatIfTimeline } from '../../api/types.gen';
import { duration } from '../../core/format';

export const ROW_PX = 18;
const HEAD_PX = 19;
const GAP_PX = 8;

export interface Block {
  readonly startNs: number;
  readonly endNs: number;
  readonly name: string;
  readonly category: string;
  /** The number of events that are drawn as one. */
  readonly count: number;
  readonly changeNs: number;
  /** Whether it takes another time than recorded. */
  readonly isMarked: boolean;
}

export interface Row {
  readonly label: string;
  readonly isHead: boolean;
  readonly topPx: number;
  readonly blocks: readonly Block[];
}

export interface Picture {
  readonly rows: readonly Row[];
  readonly lengthNs: number;
  readonly heightPx: number;
  /** The end of each version of the step, with the rows that it crosses. */
  readonly ends: readonly {
    readonly endNs: number;
    readonly topPx: number;
    readonly heightPx: number;
  }[];
}

/** The least relative change that is marked. */
const LEAST_CHANGE = 0.01;

function blocksOf(
  { start_ns, end_ns, names, categories, counts, changes_ns }: WhatIfBlocks,
  lane: WhatIfLane,
  categoryIds: readonly string[],
): readonly Block[] {
  return start_ns.map((startNs, at) => {
    const endNs = end_ns[at] ?? startNs;
    const changeNs = changes_ns[at] ?? 0;
    return {
      startNs,
      endNs,
      name: lane.names[names[at] ?? 0] ?? '',
      category: categoryIds[categories[at] ?? 0] ?? 'other',
      count: counts[at] ?? 1,
      changeNs,
      isMarked: Math.abs(changeNs) > LEAST_CHANGE * (endNs - startNs),
    };
  });
}

export function pictureOf(timeline: WhatIfTimeline): Picture {
  const { lanes, categories, recorded_ns, simulated_ns } = timeline;
  const rows: Row[] = [];
  const ends: Picture['ends'][number][] = [];
  let topPx = 0;
  for (const version of ['recorded', 'simulated'] as const) {
    const endNs = version === 'recorded' ? recorded_ns : simulated_ns;
    const label = `${version === 'recorded' ? 'Recorded' : 'Simulated'}: ${duration(endNs)}`;
    rows.push({ label, isHead: true, topPx, blocks: [] });
    topPx += HEAD_PX;
    ends.push({ endNs, topPx, heightPx: lanes.length * ROW_PX - 2 });
    for (const lane of lanes) {
      const all = blocksOf(lane[version], lane, categories);
      const blocks =
        version === 'simulated' ? all : all.map((block) => ({ ...block, isMarked: false }));
      rows.push({ label: lane.label, isHead: false, topPx, blocks });
      topPx += ROW_PX;
    }
    topPx += GAP_PX;
  }
  return {
    rows,
    lengthNs: Math.max(1, recorded_ns, simulated_ns),
    heightPx: topPx - GAP_PX,
    ends,
  };
}

/** The block at a time and a height; one that is narrow is found within a pixel of it. */
export function blockAt(picture: Picture, ns: number, yPx: number, pixelNs: number): Block | null {
  const row = picture.rows.find(({ topPx }) => yPx >= topPx && yPx < topPx + ROW_PX);
  const inside = row?.blocks.findLast(({ startNs, endNs }) => startNs <= ns && ns < endNs);
  const near = row?.blocks.find(
    ({ startNs, endNs }) => startNs - pixelNs <= ns && ns < endNs + pixelNs,
  );
  return inside ?? near ?? null;
}
