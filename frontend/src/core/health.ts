/** What is known of a recording as a file, sorted for the page. Pure. */
import type { HealthItem, Outcome, RunReport, WorkerReport } from '../api/types.gen';

export function reportOf(report: RunReport, trace: string): WorkerReport | undefined {
  return report.workers.find((worker) => worker.trace === trace);
}

type Items = readonly HealthItem[];

export const ofNature = (items: Items, nature: HealthItem['nature']): Items =>
  items.filter((item) => item.nature === nature);

/** Kinds that say that the file ends in the middle. */
const CUT_OFF = new Set(['truncated-gzip', 'truncated-json']);

/** Where the file ends though it should go on, in bytes of JSON; null where it is whole. */
export function cutOffAt(items: Items): number | null {
  const cuts = items.filter((item) => CUT_OFF.has(item.kind));
  const places = cuts.flatMap((item) => item.examples.map((example) => example.offset_bytes));
  return cuts.length === 0 ? null : Math.max(0, ...places);
}

export const lostBytes = (items: Items): number =>
  items.reduce((sum, item) => sum + item.lost_bytes, 0);

/** What makes something that is shown unreliable, what withholds it first. */
export function against(items: Items, dependsOn: readonly string[]): Items {
  const concerns = items.filter((item) => dependsOn.some((name) => item.affects.includes(name)));
  return [
    ...concerns.filter((item) => item.effect === 'withheld'),
    ...concerns.filter((item) => item.effect === 'low'),
  ];
}

/** Where the page shows what `HealthItem.affects` names beside rules; views rest on these names. */
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
  /** Rules that this recording was asked for. */
  readonly checks: readonly Outcome[];
  /** What else is shown, with the view that shows it; null where none does. */
  readonly figures: readonly { readonly name: string; readonly view: string | null }[];
}

/** What rests on a damaged part: checks and figures. */
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
  critical: 'This recording is damaged: part of what it says is not used',
  warning: 'This recording is damaged: part of what it says is doubtful',
  info: 'This file is slightly damaged: no figure is made doubtful by it',
};

/** What a recording is worth, in a headline. */
export function worthOf(items: Items): Worth {
  const damage = ofNature(items, 'damage');
  const tone = (['critical', 'warning', 'info'] as const).find((severity) =>
    damage.some((item) => item.severity === severity),
  );
  if (cutOffAt(items) !== null) {
    return { tone: tone ?? 'warning', title: 'This file was cut off: it ends in the middle' };
  }
  if (tone) return { tone, title: DAMAGED[tone] };
  if (items.some((item) => item.effect !== 'none')) {
    return {
      tone: 'info',
      title: 'This file is whole, but something in it is not to be relied on',
    };
  }
  const lacks = ofNature(items, 'gap').length > 0;
  return {
    tone: 'good',
    title: lacks ? 'This file is healthy; more could have been recorded' : 'This file is healthy',
  };
}
