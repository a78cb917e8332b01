import './styles/tokens.css';
import './styles/base.css';
import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { shouldRetry } from './api/queries';
import { App } from './app';
import { hashStore } from './host/hash';
import { NavigationProvider } from './state/navigation';

const client = new QueryClient({
  defaultOptions: {
    queries: {
      // A trace does not change while it is shown; TensorBoard's reload refreshes everything.
      staleTime: 60_000,
      // A host without a network still reaches itself: do not wait for the browser to be “online”.
      networkMode: 'always',
      retry: shouldRetry,
      retryDelay: 1500,
      refetchOnWindowFocus: false,
    },
  },
});

const root = document.getElementById('root');
if (root) {
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={client}>
        <NavigationProvider store={hashStore}>
          <App />
        </NavigationProvider>
      </QueryClientProvider>
    </StrictMode>,
  );
}
