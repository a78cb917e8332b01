/** The measures for the width of the icicle. Pure. */
import type { Modules } from '../../api/types.gen';
import { bytes, duration } from '../../core/format';
import { cellOf } from '../../widgets/table/rows';

export type Kind = 'replayed' | 'device' | 'host' | 'memory';
export type Pass = 'both' | 'forward' | 'backward';

export interface Measure {
  readonly kinds: readonly { readonly id: Kind; readonly label: string; readonly title: string }[];
  readonly passes: readonly { readonly id: Pass; readonly label: string }[];
}

const PASSES = [
  { id: 'both', label: 'Forward + backward' },
  { id: 'forward', label: 'Forward' },
  { id: 'backward', label: 'Backward' },
] as const;

const has = (table: Modules, key: string): boolean =>
  table.columns.some((column) => column.key === key);

/** The memory column: that of the device if there is one. */
const memoryKey = (table: Modules): string | null =>
  ['device_allocated_bytes', 'host_allocated_bytes'].find((key) => has(table, key)) ?? null;

const REPLAYED = 'replayed_device_total_ns';

const sumsToSomething = (table: Modules, key: string): boolean =>
  (table.values[key] ?? []).some((value) => typeof value === 'number' && value > 0);

/** The measures with data in this trace. */
export function measuresOf(table: Modules): Measure {
  const kinds: { id: Kind; label: string; title: string }[] = [];
  if (sumsToSomething(table, REPLAYED)) {
    const title = 'Time of replays of a graph that was captured in calls of the module';
    kinds.push({ id: 'replayed', label: `${table.device_label} in replays`, title });
  }
  if (table.device_label !== '') {
    const title = `Time of work launched on the ${table.device_label}`;
    kinds.push({ id: 'device', label: table.device_label, title });
  }
  kinds.push({ id: 'host', label: 'Host', title: 'Time of the host' });
  if (memoryKey(table) !== null) {
    kinds.push({ id: 'memory', label: 'Memory', title: 'Allocated in forward calls' });
  }
  const backward = ['backward_host_total_ns', 'backward_device_total_ns'];
  const hasBackward = backward.some((key) => sumsToSomething(table, key));
  return { kinds, passes: hasBackward ? PASSES : [] };
}

/** The columns to sum. */
export function keysOf(table: Modules, kind: Kind, pass: Pass): readonly string[] {
  if (kind === 'memory') return [memoryKey(table) ?? ''];
  if (kind === 'replayed') return [REPLAYED];
  const both = [`forward_${kind}_total_ns`, `backward_${kind}_total_ns`];
  return pass === 'both' ? both : [`${pass}_${kind}_total_ns`];
}

export function costOf(table: Modules, keys: readonly string[], at: number): number {
  return keys.reduce((sum, key) => sum + Math.max(0, Number(cellOf(table, key, at) ?? 0)), 0);
}

export const textOf = (kind: Kind, value: number): string =>
  kind === 'memory' ? bytes(value) : duration(value);
