import { useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useEffect, useRef, useState, useSyncExternalStore } from 'react';
import { useRuns } from './api/queries';
import type { Runs } from './api/types.gen';
import { onReload } from './host/reload';
import { visibleStore } from './host/visible';
import { Content, problemsOf } from './shell/content';
import { Rail } from './shell/rail';
import { TopBar } from './shell/top_bar';
import { useNavigation } from './state/navigation';
import { type Held, heldOf, NOTHING_HELD, type Selection, select } from './state/selection';
import { views } from './views';
import { ErrorBoundary, Failure } from './widgets/failure';
import { Skeleton } from './widgets/loaded';
import { Problems } from './widgets/problems';
import { Toasts } from './widgets/toast';

/** What the browser's tab and its history say: which view of what. */
function titleOf(view: string, selection: Selection | null): string {
  const shown = views.find(({ id }) => id === view);
  if (!selection || !shown) return 'stepscope';
  const { run, worker, span } = selection;
  const of = shown.scope === undefined || shown.scope === 'trace';
  const parts = [
    shown.title,
    shown.scope === 'runs' ? '' : run.name,
    of && run.workers.length > 1 ? worker.name : '',
    of && worker.spans.length > 1 ? `span ${span.label}` : '',
  ];
  return `${parts.filter((part) => part !== '').join(', ')} – stepscope`;
}

function Frame({ runs }: { readonly runs: Runs }): ReactNode {
  const { location } = useNavigation();
  const [held, hold] = useState<Held>(NOTHING_HELD);
  const selected = select(runs, location, held);
  const selection = selected.kind === 'selected' ? selected.selection : null;
  const next = heldOf(location, selected, held);
  // No run before the first look is over: until then the latest may not have been found.
  const run = runs.scanning ? held.run : next.run;
  if (run !== held.run || next.trace !== held.trace) hold({ run, trace: next.trace });
  const title = titleOf(location.view, selection);
  useEffect(() => {
    document.title = title;
  }, [title]);
  return (
    <div className="shell">
      <TopBar runs={runs} selection={selection} />
      <Rail selection={selection} />
      <main id="main" className="main" tabIndex={-1}>
        <div className="notices">
          <Problems problems={problemsOf(runs)} />
        </div>
        <Content runs={runs} selected={selected} />
      </main>
      <Toasts />
    </div>
  );
}

/** The page: what was found, and one view of it. */
export function App(): ReactNode {
  const isVisible = useSyncExternalStore(visibleStore.subscribe, visibleStore.current);
  const client = useQueryClient();
  const runs = useRuns(isVisible);
  const wasVisible = useRef(isVisible);
  useEffect(() => {
    // Polling rested while nobody could see the page: catch up at once.
    if (isVisible && !wasVisible.current) void client.invalidateQueries({ queryKey: ['runs'] });
    wasVisible.current = isVisible;
  }, [client, isVisible]);
  useEffect(() => onReload(() => void client.invalidateQueries()), [client]);
  if (runs.data) {
    return (
      <ErrorBoundary what="stepscope">
        {runs.error && (
          <p className="offline popup" role="alert">
            {runs.error.message} What is shown may be out of date; trying again.
          </p>
        )}
        <Frame runs={runs.data} />
      </ErrorBoundary>
    );
  }
  return (
    <div className="page lonely">
      {runs.error ? (
        <Failure error={runs.error} what="The list of runs" retry={() => void runs.refetch()} />
      ) : (
        <Skeleton />
      )}
    </div>
  );
}
