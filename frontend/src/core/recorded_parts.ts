/** Parts that a trace lacks, for views that need them. Pure. */
import type { WorkerReport } from '../api/types.gen';

/** Values of `RecordNext.flag`. */
export type Part = 'operators' | 'device' | 'steps' | 'shapes' | 'stacks' | 'modules' | 'memory';

const WORDS: Readonly<Record<Part, string>> = {
  operators: 'No operator was recorded',
  device: 'No work of a device was recorded',
  steps: 'No step was marked',
  shapes: 'Input shapes were not recorded',
  stacks: 'Python stacks were not recorded',
  modules: 'Modules were not recorded',
  memory: 'Allocations were not recorded',
};

/** The reason why a view that needs a part has no data; null if it has, or if unknown. */
export function lacking(report: WorkerReport | undefined, part: Part): string | null {
  const next = report?.record_next.find(({ flag }) => flag === part);
  return next ? `${WORDS[part]}: ${next.code} records it` : null;
}

/** The same for work on devices; programs without a device lack nothing. */
export function withoutDevice(report: WorkerReport | undefined): string | null {
  if (!report || report.devices.length > 0) return null;
  return lacking(report, 'device') ?? 'The program used no device';
}
