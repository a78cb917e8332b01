/** How each view was left, for as long as the page is open: going back to it by key or rail finds it so. Links say all. */
import type { PageLocation } from './location';

type Left = Pick<PageLocation, 'view' | 'group' | 'search' | 'sort' | 'open' | 'options'>;

export interface Memory {
  readonly remember: (location: PageLocation) => void;
  /** What leads back to a view. */
  readonly recall: (view: string) => Partial<Left>;
}

export function createMemory(): Memory {
  const left = new Map<string, Left>();
  return {
    remember: ({ view, group, search, sort, open, options }) =>
      left.set(view, { view, group, search, sort, open, options }),
    recall: (view) => left.get(view) ?? { view },
  };
}
