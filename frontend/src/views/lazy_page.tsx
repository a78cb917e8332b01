import { type ComponentType, type ReactNode, useEffect, useState } from 'react';
import { Skeleton } from '../widgets/loaded';

/**
 * A page whose code comes when it is first shown, as with `lazy`. React keeps what stands in for a suspended part on
 * the screen for 300 ms at least, however soon the code is there; this shows the page at once.
 */
export function lazyPage<P extends object>(
  load: () => Promise<{ readonly default: ComponentType<P> }>,
): ComponentType<P> {
  let loaded: ComponentType<P> | null = null;
  return function LazyPage(props: P): ReactNode {
    const [Page, setPage] = useState<ComponentType<P> | null>(() => loaded);
    const [error, setError] = useState<Error | null>(null);
    useEffect(() => {
      if (Page) return undefined;
      let isGone = false;
      load().then(
        (module) => {
          loaded = module.default;
          if (!isGone) setPage(() => module.default);
        },
        (reason: unknown) => {
          if (!isGone) setError(reason instanceof Error ? reason : new Error(String(reason)));
        },
      );
      return () => {
        isGone = true;
      };
    }, [Page]);
    // The view's boundary says so.
    if (error) throw error;
    return Page ? <Page {...props} /> : <Skeleton />;
  };
}
