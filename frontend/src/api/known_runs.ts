/** The list of runs for a view: the page keeps it fresh, so that this asks for nothing more. */
import { useSyncExternalStore } from 'react';
import { visibleStore } from '../host/visible';
import { useRuns } from './queries';
import type { Runs } from './types.gen';

/** What was found, and in which state it is; undefined until that is known. */
export function useKnownRuns(): Runs | undefined {
  const isVisible = useSyncExternalStore(visibleStore.subscribe, visibleStore.current);
  return useRuns(isVisible).data;
}
