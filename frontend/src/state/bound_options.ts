/** Options that say something of one recording: track numbers, rows, times. In another they would mean another thing. Pure. */
import type { PageLocation } from './location';

export type Place = Pick<PageLocation, 'run' | 'worker' | 'span'>;
type Left = Place & Pick<PageLocation, 'view' | 'options'>;

/** By view, what it keeps of one recording. */
const OF_RECORDING: Readonly<Record<string, readonly string[]>> = {
  timeline: ['at', 'area', 'area-tracks', 'marks', 'pin', 'toggle', 'hide', 'order'],
  memory: ['at'],
  modules: ['row', 'root', 'turned'],
};

/** By view, what it keeps of all ranks together: it holds whichever of them is chosen. */
const OF_RANKS: Readonly<Record<string, readonly string[]>> = {
  distributed: ['at', 'lines'],
};

const areSameRanks = (a: Place, b: Place): boolean => a.run === b.run && a.span === b.span;

export const isSameRecording = (a: Place, b: Place): boolean =>
  areSameRanks(a, b) && a.worker === b.worker;

/** What of a view's options holds in another place as well. */
export function carried(left: Left, to: Place): PageLocation['options'] {
  const bound = [
    ...(isSameRecording(left, to) ? [] : (OF_RECORDING[left.view] ?? [])),
    ...(areSameRanks(left, to) ? [] : (OF_RANKS[left.view] ?? [])),
  ];
  if (bound.length === 0) return left.options;
  return Object.fromEntries(Object.entries(left.options).filter(([name]) => !bound.includes(name)));
}
