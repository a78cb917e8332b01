/** Locations of operators and kernels in the views. */
import type { Patch } from '../../state/navigation';
import { nameOfRow } from '../table/rows';

/** Columns that identify a row of the operator table in every grouping. */
export const OPERATOR_IDENTITY = ['name', 'kind', 'input_dims', 'stack', 'module'] as const;
export const KERNEL_IDENTITY = [
  'full_name',
  'operator',
  'grid',
  'block',
  'registers_per_thread',
  'shared_memory_bytes',
] as const;
/** Columns that identify a row when grouped by stream. */
export const STREAM_IDENTITY = [...KERNEL_IDENTITY, 'devices', 'streams'] as const;

const shown = (view: string, values: readonly string[]): Patch => ({
  view,
  group: null,
  search: '',
  options: { row: nameOfRow(values) },
});

export const operatorLocation = (name: string, kind: string): Patch =>
  shown('operators', [name, kind]);

export const kernelLocation = (fullName: string): Patch => shown('kernels', [fullName]);

/** The callers of a call or a kernel in the flame graph. */
export const callersInFlame = (name: string, measure: 'host' | 'device'): Patch => ({
  view: 'flame',
  options: { name, direction: 'callers', ...(measure === 'device' ? { measure } : {}) },
});
