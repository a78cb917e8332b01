/** The health of a trace file. Pure. */
import type { HealthItem, Outcome, RunReport, WorkerReport } from '../api/types.gen';

export function reportOf(report: RunReport, trace: string): WorkerReport | undefined {
  return report.workers.find((worker) => worker.trace === trace);
}

type Items = readonly HealthItem[];

export const ofNature = (items: Items, nature: HealthItem['nature']): Items =>
  items.filter((item) => item.nature === nature);

/** Kinds of health items for files that end early. */
const CUT_OFF = new Set(['truncated-gzip', 'truncated-json']);

/** The offset of the cut in bytes of JSON; null for complete files. */
export function cutOffAt(items: Items): number | null {
  const cuts = items.filter((item) => CUT_OFF.has(item.kind));
  const offsets = cuts.flatMap((item) => item.examples.map((example) => example.offset_bytes));
  return cuts.length === 0 ? null : Math.max(0, ...offsets);
}

export const lostBytes = (items: Items): number =>
  items.reduce((sum, item) => sum + item.lost_bytes, 0);

/** Health items that affect a view, withheld data first. */
export function against(items: Items, dependsOn: readonly string[]): Items {
  const concerns = items.filter((item) => dependsOn.some((name) => item.affects.includes(name)));
  return [
    ...concerns.filter((item) => item.effect === 'withheld'),
    ...concerns.filter((item) => item.effect === 'low'),
  ];
}

/** The view of each figure that `HealthItem.affects` names. */
export const SHOWN_IN: Readonly<Record<string, string>> = {
  verdict: 'advice',
  'step breakdown': 'overview',
  'device use': 'overview',
  'idle causes': 'overview',
  operators: 'operators',
  kernels: 'kernels',
  memory: 'memory',
  'comparison of ranks': 'distributed',
};

export interface Affected {
  /** Rules that ran on this trace. */
  readonly checks: readonly Outcome[];
  /** Other figures, with their view; null if no view shows them. */
  readonly figures: readonly { readonly name: string; readonly view: string | null }[];
}

/** The checks and figures that a health item affects. */
export function affectedBy({ affects }: HealthItem, outcomes: readonly Outcome[]): Affected {
  const byRule = new Map(outcomes.map((outcome) => [outcome.rule, outcome]));
  return {
    checks: affects.flatMap((name) => byRule.get(name) ?? []),
    figures: affects
      .filter((name) => !byRule.has(name))
      .map((name) => ({ name, view: SHOWN_IN[name] ?? null })),
  };
}

export interface Worth {
  readonly tone: 'good' | 'info' | 'warning' | 'critical';
  readonly title: string;
}

const DAMAGED: Readonly<Record<HealthItem['severity'], string>> = {
  critical: 'This trace is damaged: part of its data is not used',
  warning: 'This trace is damaged: part of its data is unreliable',
  info: 'This file is slightly damaged: all figures are reliable',
};

/** The condition of a trace file as a headline. */
export function worthOf(items: Items): Worth {
  const damage = ofNature(items, 'damage');
  const tone = (['critical', 'warning', 'info'] as const).find((severity) =>
    damage.some((item) => item.severity === severity),
  );
  if (cutOffAt(items) !== null) {
    return { tone: tone ?? 'warning', title: 'This file is cut off' };
  }
  if (tone) return { tone, title: DAMAGED[tone] };
  if (items.some((item) => item.effect !== 'none')) {
    return {
      tone: 'info',
      title: 'This file is complete, but part of its data is unreliable',
    };
  }
  const lacks = ofNature(items, 'gap').length > 0;
  return {
    tone: 'good',
    title: lacks ? 'This file is healthy; more could have been recorded' : 'This file is healthy',
  };
}
