/** The location of the page for components. */
import { createContext, type ReactNode, use, useMemo, useState, useSyncExternalStore } from 'react';
import type { HashStore } from '../host/hash';
import { carried, isSameRecording } from './bound_options';
import { HOME, type PageLocation } from './location';
import { createMemory } from './memory';

export type Patch = Partial<PageLocation>;

export interface Navigation {
  readonly location: PageLocation;
  readonly go: (patch: Patch, mode?: 'push' | 'replace') => void;
  readonly href: (patch: Patch) => string;
  /** The URL of the current location, with explicit names instead of defaults. */
  readonly addressOf: (names: Patch) => string;
  /** The last state of a view in this session, or its default. */
  readonly backTo: (view: string) => Patch;
}

const Context = createContext<Navigation | null>(null);

/** The state of a view; it is reset for another view, run, worker or span. */
export const VIEW_STATE = {
  group: null,
  search: '',
  sort: null,
  open: null,
  options: {},
} satisfies Patch;
const RECORDING_STATE: Patch = { step: null, time: null, event: null };

/** A step replaces a time, and a time replaces a step. */
function filterPart(patch: Patch): Patch {
  if (patch.time) return { step: null };
  return patch.step !== undefined && patch.step !== null ? { time: null } : {};
}

/** The location after a change, without state that refers to the previous one. */
export function moved(from: PageLocation, patch: Patch): PageLocation {
  const leavesView = patch.view !== undefined && patch.view !== from.view;
  const leavesRun = patch.run !== undefined && patch.run !== from.run;
  const to = { ...from, ...(leavesRun ? { worker: null, span: null } : {}), ...patch };
  return {
    ...to,
    ...(leavesView ? VIEW_STATE : { options: carried(from, to) }),
    ...(isSameRecording(from, to) ? {} : RECORDING_STATE),
    ...filterPart(patch),
    ...patch,
  };
}

interface Props {
  readonly store: HashStore;
  readonly children: ReactNode;
}

export function NavigationProvider({ store, children }: Props): ReactNode {
  const location = useSyncExternalStore(store.subscribe, store.current);
  const [memory] = useState(createMemory);
  memory.remember(location);
  const navigation = useMemo<Navigation>(
    () => ({
      location,
      go: (patch, mode = 'push') => store.write(moved(store.current(), patch), mode),
      href: (patch) => store.href(moved(location, patch)),
      addressOf: (names) => store.href({ ...location, ...names }),
      backTo: (view) =>
        view === location.view ? { view, ...VIEW_STATE } : memory.recall(view, location),
    }),
    [location, store, memory],
  );
  return <Context value={navigation}>{children}</Context>;
}

export function useNavigation(): Navigation {
  const navigation = use(Context);
  if (!navigation) throw new Error('useNavigation is used outside of NavigationProvider');
  return navigation;
}

interface ScopeProps {
  readonly place: Pick<Patch, 'worker' | 'span'>;
  readonly children: ReactNode;
}

/** Links inside lead to this worker and span unless they name others. */
export function NavigationScope({ place, children }: ScopeProps): ReactNode {
  const outer = useNavigation();
  const { worker, span } = place;
  const inner = useMemo<Navigation>(() => {
    const scoped = (patch: Patch): Patch => ({ worker, span, ...patch });
    return {
      ...outer,
      go: (patch, mode) => outer.go(scoped(patch), mode),
      href: (patch) => outer.href(scoped(patch)),
    };
  }, [outer, worker, span]);
  return <Context value={inner}>{children}</Context>;
}

/** A store in memory, for tests. */
export function memoryStore(start: Patch = {}): HashStore {
  let location: PageLocation = { ...HOME, ...start };
  const listeners = new Set<() => void>();
  return {
    current: () => location,
    write: (next) => {
      location = next;
      for (const listener of listeners) listener();
    },
    subscribe: (changed) => {
      listeners.add(changed);
      return () => listeners.delete(changed);
    },
    href: (next) => `#${next.view}`,
  };
}
