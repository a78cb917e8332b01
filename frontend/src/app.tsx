import { useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useEffect, useRef, useState, useSyncExternalStore } from 'react';
import { useRuns } from './api/queries';
import type { Runs } from './api/types.gen';
import { onReload } from './host/reload';
import { visibleStore } from './host/visible';
import { Content } from './shell/content';
import { FileProblems } from './shell/file_problems';
import { MainContent } from './shell/main_content';
import { NewRuns } from './shell/new_runs';
import { Rail } from './shell/rail';
import { TopBar } from './shell/top_bar';
import { landingView } from './state/landing';
import { HOME, LANDING, type PageLocation } from './state/location';
import { useNavigation, VIEW_STATE } from './state/navigation';
import {
  type LastShown,
  lastShown,
  NOTHING_SHOWN,
  type Selection,
  select,
} from './state/selection';
import { views } from './views';
import { ErrorBoundary, Failure } from './widgets/failure';
import { Skeleton } from './widgets/loaded';
import { Toasts } from './widgets/toast';

/** Title of the browser tab: the view and its subject. */
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

const isOfAllRuns = (view: string): boolean =>
  views.find(({ id }) => id === view)?.scope === 'runs';

/** The view and the run or trace that it shows. */
function subjectOf(view: string, selection: Selection | null): string {
  const scope = views.find(({ id }) => id === view)?.scope;
  if (!selection || scope === 'runs') return view;
  return `${view} ${scope === 'run' ? selection.run.id : selection.span.trace}`;
}

const stateOf = ({ group, search, sort, open, options }: PageLocation): string =>
  JSON.stringify([group, search, sort, open, options]);

function Frame({ runs }: { readonly runs: Runs }): ReactNode {
  const { location, go } = useNavigation();
  const [last, setLast] = useState<LastShown>(NOTHING_SHOWN);
  const isKnown = views.some(({ id }) => id === location.view);
  const landing = location.view === LANDING || !location.run ? landingView(runs) : HOME.view;
  const view = isKnown ? location.view : (landing ?? 'runs');
  useEffect(() => {
    if (!isKnown && landing !== null) go({ ...location, ...VIEW_STATE, view: landing }, 'replace');
  }, [isKnown, location, landing, go]);
  const selected = select(runs, location, last);
  const selection = selected.kind === 'selected' ? selected.selection : null;
  const next = lastShown(location, selected, last);
  // No run is fixed before the first scan ends: a later one may be more recent.
  const run = runs.scanning ? last.run : next.run;
  if (run !== last.run || next.trace !== last.trace) setLast({ run, trace: next.trace });
  const title = titleOf(view, selection);
  useEffect(() => {
    document.title = title;
  }, [title]);
  return (
    <div className="shell">
      <TopBar runs={runs} selection={selection} />
      <Rail selection={selection} />
      <MainContent subject={subjectOf(view, selection)} state={stateOf(location)}>
        <div className="notices">
          <FileProblems runs={runs} run={isOfAllRuns(view) ? null : (selection?.run ?? null)} />
          <NewRuns runs={runs} shown={view === 'runs' ? null : (selection?.run.id ?? null)} />
        </div>
        <Content runs={runs} selected={selected} view={view} />
      </MainContent>
      <Toasts />
    </div>
  );
}

export function App(): ReactNode {
  const isVisible = useSyncExternalStore(visibleStore.subscribe, visibleStore.current);
  const client = useQueryClient();
  const runs = useRuns(isVisible);
  const wasVisible = useRef(isVisible);
  useEffect(() => {
    // Requests stop while the page is hidden: refresh at once.
    if (isVisible && !wasVisible.current) void client.invalidateQueries({ queryKey: ['runs'] });
    wasVisible.current = isVisible;
  }, [client, isVisible]);
  useEffect(() => onReload(() => void client.invalidateQueries()), [client]);
  if (runs.data) {
    return (
      <ErrorBoundary what="stepscope">
        {runs.error && (
          <p className="offline popup" role="alert">
            {runs.error.message} The data may be out of date; retrying.
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
