import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { type RenderResult, render } from '@testing-library/react';
import type { ReactNode } from 'react';
import type { HashStore } from '../src/host/hash';
import { memoryStore, NavigationProvider, type Patch } from '../src/state/navigation';

export interface Rendered extends RenderResult {
  readonly store: HashStore;
}

/** Renders a component with a location and queries. */
export function renderInPage(part: ReactNode, start: Patch = {}): Rendered {
  const store = memoryStore(start);
  const client = new QueryClient({ defaultOptions: { queries: { retry: false } } });
  const result = render(
    <QueryClientProvider client={client}>
      <NavigationProvider store={store}>{part}</NavigationProvider>
    </QueryClientProvider>,
  );
  return { ...result, store };
}
