/** The page's location for the components: read it, move it, link to it. */
import { createContext, type ReactNode, use, useMemo, useSyncExternalStore } from 'react';
import type { HashStore } from '../host/hash';
import { HOME, type PageLocation } from './location';

export type Patch = Partial<PageLocation>;

export interface Navigation {
  readonly location: PageLocation;
  readonly go: (patch: Patch, mode?: 'push' | 'replace') => void;
  readonly href: (patch: Patch) => string;
}

const Context = createContext<Navigation | null>(null);

/** What a view's own state is; another view, run, worker or span starts with its own default. */
const VIEW_STATE: Patch = { group: null, search: '', sort: null, open: null };
const RECORDING_STATE: Patch = { step: null };

/** Where a patch leads to: what belongs to the place that is left does not come along. */
export function moved(from: PageLocation, patch: Patch): PageLocation {
  const leavesView = patch.view !== undefined && patch.view !== from.view;
  const leavesRun = patch.run !== undefined && patch.run !== from.run;
  const leavesRecording = leavesRun || patch.worker !== undefined || patch.span !== undefined;
  return {
    ...from,
    ...(leavesView ? VIEW_STATE : {}),
    ...(leavesRun ? { worker: null, span: null } : {}),
    ...(leavesRecording ? RECORDING_STATE : {}),
    ...patch,
  };
}

interface Props {
  readonly store: HashStore;
  readonly children: ReactNode;
}

export function NavigationProvider({ store, children }: Props): ReactNode {
  const location = useSyncExternalStore(store.subscribe, store.current);
  const navigation = useMemo<Navigation>(
    () => ({
      location,
      go: (patch, mode = 'push') => store.write(moved(store.current(), patch), mode),
      href: (patch) => store.href(moved(location, patch)),
    }),
    [location, store],
  );
  return <Context value={navigation}>{children}</Context>;
}

export function useNavigation(): Navigation {
  const navigation = use(Context);
  if (!navigation) throw new Error('useNavigation is used outside of NavigationProvider');
  return navigation;
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
