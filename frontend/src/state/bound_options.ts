/** View options that refer to one trace: track numbers, rows, times. Pure. */
import type { PageLocation } from './location';

export type TraceLocation = Pick<PageLocation, 'run' | 'worker' | 'span'>;
type Left = TraceLocation & Pick<PageLocation, 'view' | 'options'>;

const OF_RECORDING: Readonly<Record<string, readonly string[]>> = {
  timeline: ['at', 'area', 'area-tracks', 'marks', 'pin', 'toggle', 'hide', 'order'],
  memory: ['at'],
  modules: ['row', 'root', 'turned'],
};

/** Options that refer to all ranks of a span. */
const OF_RANKS: Readonly<Record<string, readonly string[]>> = {
  distributed: ['at', 'lines'],
};

const areSameRanks = (a: TraceLocation, b: TraceLocation): boolean =>
  a.run === b.run && a.span === b.span;

export const isSameRecording = (a: TraceLocation, b: TraceLocation): boolean =>
  areSameRanks(a, b) && a.worker === b.worker;

/** The options that remain valid at another location. */
export function carried(left: Left, to: TraceLocation): PageLocation['options'] {
  const bound = [
    ...(isSameRecording(left, to) ? [] : (OF_RECORDING[left.view] ?? [])),
    ...(areSameRanks(left, to) ? [] : (OF_RANKS[left.view] ?? [])),
  ];
  if (bound.length === 0) return left.options;
  return Object.fromEntries(Object.entries(left.options).filter(([name]) => !bound.includes(name)));
}
