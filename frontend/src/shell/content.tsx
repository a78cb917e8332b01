import { type ReactNode, Suspense } from 'react';
import type { Problem, Runs, Span } from '../api/types.gen';
import { plural } from '../core/format';
import { spansOf } from '../core/progress';
import { sentence } from '../core/sentence';
import { useNavigation } from '../state/navigation';
import type { Selected, Selection } from '../state/selection';
import { views } from '../views';
import type { View } from '../views/view';
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
}

const identity = (problem: Problem): string => `${problem.path}\n${problem.message}`;

/** What could not be read, in the folder and in each run, every one of them once. */
export function problemsOf(runs: Runs): Problem[] {
  const spans = runs.runs.flatMap((run) => run.workers.flatMap((worker) => worker.spans));
  const all = [...runs.problems, ...spans.flatMap((span) => span.problem ?? [])];
  return [...new Map(all.map((problem) => [identity(problem), problem])).values()];
}

/** How far the look through the log directory has come, and how to end it, or to begin it again. */
function LookedAt({ runs }: { readonly runs: Runs }): ReactNode {
  const { scanning, is_cancelled, looked_at_count } = runs;
  return (
    <div className="looked-at">
      {looked_at_count > 0 && <p className="number">{plural(looked_at_count, 'file')} looked at</p>}
      {scanning && (
        <ChangeButton change={{ what: 'cancel', of: 'listing' }} about="looking for traces">
          Stop
        </ChangeButton>
      )}
      {is_cancelled && !scanning && (
        <ChangeButton change={{ what: 'read', of: 'listing' }} about="for traces">
          Look on
        </ChangeButton>
      )}
    </div>
  );
}

function NoTrace({ runs }: { readonly runs: Runs }): ReactNode {
  if (runs.scanning) {
    return (
      <Empty icon="search" title={`Looking for traces in ${runs.logdir}`}>
        <p>Large folders take a moment. This page shows each run as soon as it is found.</p>
        <LookedAt runs={runs} />
      </Empty>
    );
  }
  if (runs.is_cancelled) {
    return (
      <Empty icon="search" title="Looking for traces was stopped">
        <p>None was found in {runs.logdir} until then.</p>
        <LookedAt runs={runs} />
      </Empty>
    );
  }
  return (
    <Empty icon="file" title={`No trace found in ${runs.logdir}`}>
      <p>Looked for {runs.looked_for}. This page keeps looking. To record one:</p>
      <RecordHint />
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

/** What stands in for the view while its file is not there. A view of a whole run needs any of its files. */
function obstacle({ run, span }: Selection, { scope }: View): ReactNode | null {
  if (span.state === 'ready' || scope === 'runs') return null;
  if (scope === 'run' && spansOf(run).some(({ state }) => state === 'ready')) return null;
  if (span.state === 'unreadable') return <Unreadable span={span} />;
  return <Reading run={run} trace={span.trace} />;
}

/** Above a view that cannot be narrowed while the others are: that it shows more than they do. */
function WholeNote({ view }: { readonly view: View }): ReactNode {
  const { location, go } = useNavigation();
  const isNarrowed = location.step !== null || location.time !== null;
  if (view.isFiltered || view.scope === 'runs' || !isNarrowed) return null;
  const chosen = location.time ? 'the chosen time' : `step ${location.step}`;
  return (
    <aside className="notice framed flex muted" aria-label="Not narrowed">
      <Icon name="filter" size={15} />
      <p className="grow">
        {view.title} is of the whole recording; {chosen} narrows other views.
      </p>
      <button
        type="button"
        className="button quiet small"
        onClick={() => go({ step: null, time: null })}
      >
        Let it go
      </button>
    </aside>
  );
}

/** What is shown anew, with nothing of its state kept. */
function identityOf(view: View, { run, span }: Selection): string {
  if (view.scope === 'runs') return view.id;
  return `${view.id} ${view.scope === 'run' ? run.id : span.trace}`;
}

function ViewPage({ selection }: { readonly selection: Selection }): ReactNode {
  const { location } = useNavigation();
  const view = views.find((candidate) => candidate.id === location.view);
  if (!view) {
    return (
      <Empty icon="info" title={`There is no view “${location.view}”`}>
        <Goto to={{ view: 'advice' }} className="button">
          Show the advice
        </Goto>
      </Empty>
    );
  }
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

/** The chosen view of the chosen recording, or why there is none. */
export function Content({ runs, selected }: Props): ReactNode {
  if (selected.kind === 'selected') return <ViewPage selection={selected.selection} />;
  return (
    <div className="page">
      <h1 className="visually-hidden">stepscope</h1>
      {selected.kind === 'empty' ? <NoTrace runs={runs} /> : <UnknownRun name={selected.name} />}
    </div>
  );
}
