/** What a recording lacks, as its advice says: for views that live on one kind of data. Pure. */
import type { WorkerReport } from '../api/types.gen';

/** Parts of a recording, as `RecordNext.flag` names them. */
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

/** Why a view on this part has nothing to show; null where it has, or where that is not known yet. */
export function lacking(report: WorkerReport | undefined, part: Part): string | null {
  const next = report?.record_next.find(({ flag }) => flag === part);
  return next ? `${WORDS[part]}: ${next.code} records it` : null;
}

/** The same for what runs on a device; a program without one has nothing to record. */
export function withoutDevice(report: WorkerReport | undefined): string | null {
  if (!report || report.devices.length > 0) return null;
  return lacking(report, 'device') ?? 'The program used no device';
}
