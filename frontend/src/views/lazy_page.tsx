import { type ComponentType, type ReactNode, useEffect, useState } from 'react';
import { Skeleton } from '../widgets/loaded';

/**
 * A page whose code is loaded when first shown. Unlike with `lazy`, the page appears as soon as it is loaded: React
 * shows the fallback of a suspended component for at least 300 ms.
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
      let isUnmounted = false;
      load().then(
        (module) => {
          loaded = module.default;
          if (!isUnmounted) setPage(() => module.default);
        },
        (reason: unknown) => {
          if (!isUnmounted) setError(reason instanceof Error ? reason : new Error(String(reason)));
        },
      );
      return () => {
        isUnmounted = true;
      };
    }, [Page]);
    // For the view's error boundary.
    if (error) throw error;
    return Page ? <Page {...props} /> : <Skeleton />;
  };
}
