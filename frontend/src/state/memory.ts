/** How each view was left, for as long as the page is open: going back to it by key or rail finds it so. Links say all. */
import { carried, type Place } from './bound_options';
import type { PageLocation } from './location';

type ViewState = Pick<PageLocation, 'view' | 'group' | 'search' | 'sort' | 'open' | 'options'>;

export interface Memory {
  readonly remember: (location: PageLocation) => void;
  /** What leads back to a view; in another recording than it was left in, without what was of that one. */
  readonly recall: (view: string, place: Place) => Partial<ViewState>;
}

export function createMemory(): Memory {
  const left = new Map<string, PageLocation>();
  return {
    remember: (location) => left.set(location.view, location),
    recall: (view, place) => {
      const found = left.get(view);
      if (!found) return { view };
      const { group, search, sort, open } = found;
      return { view, group, search, sort, open, options: carried(found, place) };
    },
  };
}
