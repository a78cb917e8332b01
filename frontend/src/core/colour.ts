/**
 * The colour of each category, the same in every view and theme (at least 3:1 on both surfaces).
 */

const FIXED: Readonly<Record<string, string>> = {
  kernel: '#3b7dd8',
  communication: '#9063cd',
  memcpy: '#d07a1f',
  memset: '#a3862a',
  runtime: '#cf5b88',
  dataloader: '#d9483b',
  cpu: '#2a958b',
  python: '#5f8f3a',
  module: '#7a6bbf',
  annotation: '#6c78a8',
  'device-annotation': '#4a86a8',
  step: '#5b6c86',
  synchronization: '#b0577a',
  overhead: '#94733f',
  other: '#7d8796',
  alloc: '#a0683a',
  'post-sync': '#b556a8',
  'host-stall': '#c2603d',
  dispatch: '#8f8a2c',
  queued: '#5f7fa6',
  'no-record': '#8a8f98',
  tail: '#6f7785',
};

const FALLBACK = ['#5a8f3c', '#5b74c9', '#b0577a', '#3a8fb0', '#9a7440', '#7a6bbf'] as const;

function hash(text: string): number {
  let value = 2166136261;
  for (const letter of text) value = Math.imul(value ^ (letter.codePointAt(0) ?? 0), 16777619);
  return value >>> 0;
}

/** The colour of a category or an idle cause; unknown ids get a constant colour. */
export function colourOf(id: string): string {
  return FIXED[id] ?? (FALLBACK[hash(id) % FALLBACK.length] as string);
}

/** Memory categories never appear together with time categories. */
export const MEMORY_COLOURS = {
  allocated: '#3b7dd8',
  reserved: '#9063cd',
  'out-of-memory': '#d9483b',
  moment: '#2a958b',
  born: '#2f9e63',
  freed: '#c2603d',
  left: '#d9483b',
  parameter: '#3f8f4f',
  optimizer_state: '#a3862a',
  input: '#cf5b88',
  temporary: '#9063cd',
  activation: '#d9483b',
  gradient: '#3b7dd8',
  autograd_detail: '#5f7fa6',
  unknown: '#7d8796',
} as const;

/** The id that determines the colour of a slice: idle slices have the colour of their cause. */
export const colourId = (category: string): string => category.replace(/^idle-/, '');
