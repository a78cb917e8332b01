import { type ReactNode, Suspense } from 'react';
import type { Runs, Span } from '../api/types.gen';
import { plural } from '../core/format';
import { spansOf } from '../core/progress';
import { sentence } from '../core/sentence';
import { useNavigation } from '../state/navigation';
import type { Selected, Selection } from '../state/selection';
import { views } from '../views';
import type { View } from '../views/view';
import { Button } from '../widgets/button';
import { Empty } from '../widgets/empty';
import { ErrorBoundary } from '../widgets/failure';
import { Goto } from '../widgets/goto';
import { Icon } from '../widgets/icon';
import { Skeleton } from '../widgets/loaded';
import { Reading } from '../widgets/reading';
import { ChangeButton } from '../widgets/reading/change_button';
import { RunProgress } from '../widgets/reading/run_progress';
import { RecordHint } from '../widgets/record_hint';
import { Caution } from './caution';

interface Props {
  readonly runs: Runs;
  readonly selected: Selected;
  /** The id of the view. */
  readonly view: string;
}

/** The progress of the scan, with buttons to stop or continue it. */
function LookedAt({ runs }: { readonly runs: Runs }): ReactNode {
  const { scanning, is_cancelled, looked_at_count } = runs;
  return (
    <div className="looked-at">
      {looked_at_count > 0 && <p className="number">{plural(looked_at_count, 'file')} scanned</p>}
      {scanning && (
        <ChangeButton change={{ what: 'cancel', of: 'listing' }} about="scanning for traces">
          Stop
        </ChangeButton>
      )}
      {is_cancelled && !scanning && (
        <ChangeButton change={{ what: 'read', of: 'listing' }} about="the scan">
          Continue
        </ChangeButton>
      )}
    </div>
  );
}

function NoTrace({ runs }: { readonly runs: Runs }): ReactNode {
  if (runs.scanning) {
    return (
      <Empty icon="search" title={`Scanning ${runs.logdir} for traces`}>
        <p>Large folders take a moment. This page shows each run as soon as it is found.</p>
        <LookedAt runs={runs} />
      </Empty>
    );
  }
  if (runs.is_cancelled) {
    return (
      <Empty icon="search" title="The scan for traces was stopped">
        <p>It found no trace in {runs.logdir}.</p>
        <LookedAt runs={runs} />
      </Empty>
    );
  }
  return (
    <Empty icon="file" title={`No trace found in ${runs.logdir}`}>
      <p>
        Searched for {runs.looked_for}; <code>stepscope serve FILE</code> opens a trace with another
        name. The page keeps scanning. To record a script without changing it:
      </p>
      <RecordHint logFolder={runs.logdir} />
    </Empty>
  );
}

function UnknownRun({ name }: { readonly name: string }): ReactNode {
  return (
    <Empty icon="info" title="There is no such run">
      <p>
        “{name}” is not in this log directory: it may have been renamed or removed, or this link may
        be from another one.
      </p>
      <Goto to={{ run: null, worker: null, span: null }} className="button">
        Show the latest run
      </Goto>
    </Empty>
  );
}

function Unreadable({ span }: { readonly span: Span }): ReactNode {
  const { problem, file } = span;
  return (
    <Empty icon="critical" tone="bad" title={`${file} could not be read`}>
      {problem && (
        <>
          <p>
            <code>{problem.path}</code>
          </p>
          <p>{sentence(problem.message)}</p>
          <p>{sentence(problem.remedy)}</p>
        </>
      )}
      <ChangeButton change={{ what: 'read', of: 'traces', id: span.trace }} about={file}>
        Read again
      </ChangeButton>
    </Empty>
  );
}

/** Replaces the view if its file is not ready. A view of a run needs any of its files. */
function obstacle({ run, span }: Selection, { scope }: View): ReactNode | null {
  if (span.state === 'ready' || scope === 'runs') return null;
  if (scope === 'run' && spansOf(run).some(({ state }) => state === 'ready')) return null;
  if (span.state === 'unreadable') return <Unreadable span={span} />;
  return <Reading run={run} trace={span.trace} />;
}

/** A note that the view ignores the filter. */
function WholeNote({ view }: { readonly view: View }): ReactNode {
  const { location, go } = useNavigation();
  const isNarrowed = location.step !== null || location.time !== null;
  const isFiltered = view.isFiltered === 'step' ? location.time === null : view.isFiltered;
  if (isFiltered || view.scope === 'runs' || !isNarrowed) return null;
  const filter = location.time ? 'time range' : `step ${location.step}`;
  return (
    <aside className="notice framed flex muted" aria-label="Not filtered">
      <Icon name="filter" size={15} />
      <p className="grow">
        {view.title} shows the whole trace; the filter ({filter}) applies to other views.
      </p>
      <Button quiet small onClick={() => go({ step: null, time: null })}>
        Clear filter
      </Button>
    </aside>
  );
}

/** A change of this key resets the state of the view. */
function identityOf(view: View, { run, span }: Selection): string {
  if (view.scope === 'runs') return view.id;
  return `${view.id} ${view.scope === 'run' ? run.id : span.trace}`;
}

interface ViewProps {
  readonly selection: Selection;
  readonly id: string;
}

function ViewPage({ selection, id }: ViewProps): ReactNode {
  const view = views.find((candidate) => candidate.id === id);
  if (!view) throw new Error(`There is no view ${id}`);
  const { run, worker, span } = selection;
  const { Page } = view;
  const title = (
    <h1 className="visually-hidden">
      {view.title} of {run.name}, {worker.name}, span {span.label}
    </h1>
  );
  const instead = obstacle(selection, view);
  if (instead) {
    return (
      <div className="page">
        {title}
        {instead}
      </div>
    );
  }
  return (
    <>
      {title}
      <ErrorBoundary what={view.title} key={identityOf(view, selection)}>
        <Caution selection={selection} dependsOn={view.dependsOn} />
        <WholeNote view={view} />
        {(view.scope === 'run' || view.dependsOnRun) && <RunProgress run={run} />}
        <Suspense fallback={<Skeleton />}>
          <Page selection={selection} />
        </Suspense>
      </ErrorBoundary>
    </>
  );
}

export function Content({ runs, selected, view }: Props): ReactNode {
  if (selected.kind === 'selected') return <ViewPage selection={selected.selection} id={view} />;
  return (
    <div className="page">
      <h1 className="visually-hidden">stepscope</h1>
      {selected.kind === 'empty' ? <NoTrace runs={runs} /> : <UnknownRun name={selected.name} />}
    </div>
  );
}
