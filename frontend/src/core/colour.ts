/**
 * The palette: the colour of each category, the same in every view and theme (at least 3:1 on both surfaces). Those
 * that meet in one bar or on one track also differ for red, green and blue blindness (`canvas/colours.test.ts`).
 */

const FIXED: Readonly<Record<string, string>> = {
  kernel: '#2262d8',
  communication: '#9086f5',
  memcpy: '#a26e5e',
  memset: '#7d7316',
  runtime: '#d152b1',
  dataloader: '#e55616',
  cpu: '#01a68a',
  python: '#728c24',
  module: '#7a5fc9',
  annotation: '#4d6e84',
  'device-annotation': '#476e71',
  step: '#6e6558',
  synchronization: '#b0577a',
  overhead: '#94733f',
  other: '#888698',
  alloc: '#a0683a',
  'post-sync': '#9a76d8',
  'host-stall': '#b0417a',
  dispatch: '#a7815a',
  queued: '#087291',
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
