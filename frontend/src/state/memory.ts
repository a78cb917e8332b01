/**
 * The last state of each view while the page is open, restored by shortcuts and the list of views.
 */
import { carried, type TraceLocation } from './bound_options';
import type { PageLocation } from './location';

type ViewState = Pick<PageLocation, 'view' | 'group' | 'search' | 'sort' | 'open' | 'options'>;

export interface Memory {
  readonly remember: (location: PageLocation) => void;
  /** The state of a view, without options that refer to another trace. */
  readonly recall: (view: string, to: TraceLocation) => Partial<ViewState>;
}

export function createMemory(): Memory {
  const left = new Map<string, PageLocation>();
  return {
    remember: (location) => left.set(location.view, location),
    recall: (view, to) => {
      const last = left.get(view);
      if (!last) return { view };
      const { group, search, sort, open } = last;
      return { view, group, search, sort, open, options: carried(last, to) };
    },
  };
}
