/** Recently used items, latest first, in local storage. */
import { readChoice, writeChoice } from './choice';

const MOST = 20;

/** The list with an item moved to the front. Pure. */
export function withLatest(list: readonly string[], latest: string): readonly string[] {
  return [latest, ...list.filter((item) => item !== latest)].slice(0, MOST);
}

export function readRecent(name: string): readonly string[] {
  try {
    const value: unknown = JSON.parse(readChoice(name) ?? '[]');
    return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
  } catch {
    return [];
  }
}

export function addRecent(name: string, latest: string): void {
  const before = readRecent(name);
  if (before[0] !== latest) writeChoice(name, JSON.stringify(withLatest(before, latest)));
}
