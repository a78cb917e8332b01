/** One fixed colour per category, in every view and in both themes (at least 3:1 on either surface). */

const FIXED: Readonly<Record<string, string>> = {
  kernel: '#3b7dd8',
  communication: '#9063cd',
  memcpy: '#d07a1f',
  memset: '#a3862a',
  runtime: '#cf5b88',
  dataloader: '#d9483b',
  cpu: '#2a958b',
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

/** The colour of a category or an idle cause; an unknown one gets a colour that stays the same. */
export function colourOf(id: string): string {
  return FIXED[id] ?? (FALLBACK[hash(id) % FALLBACK.length] as string);
}
