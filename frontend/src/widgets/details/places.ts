/** Where the page shows an operator or a kernel with everything about it, and what leads to it. */
import type { Patch } from '../../state/navigation';
import { nameOfRow } from '../table/rows';

/** Columns that together name a row of the operators, whichever grouping there is. */
export const OPERATOR_IDENTITY = ['name', 'kind', 'input_dims', 'stack', 'module'] as const;
export const KERNEL_IDENTITY = [
  'full_name',
  'operator',
  'grid',
  'block',
  'registers_per_thread',
  'shared_memory_bytes',
] as const;
/** By stream, these tell rows apart, too; else they only say where a kernel ran. */
export const STREAM_IDENTITY = [...KERNEL_IDENTITY, 'devices', 'streams'] as const;

const shown = (view: string, values: readonly string[]): Patch => ({
  view,
  group: null,
  search: '',
  options: { row: nameOfRow(values) },
});

export const placeOfOperator = (name: string, kind: string): Patch =>
  shown('operators', [name, kind]);

export const placeOfKernel = (fullName: string): Patch => shown('kernels', [fullName]);

/** Everything that leads to a call or a kernel, as one picture: its callers, the costliest widest. */
export const callersInFlame = (name: string, measure: 'host' | 'device'): Patch => ({
  view: 'flame',
  options: { name, direction: 'callers', ...(measure === 'device' ? { measure } : {}) },
});
