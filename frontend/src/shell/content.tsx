import { type ReactNode, Suspense } from 'react';
import type { Problem, Runs, Span } from '../api/types.gen';
import { sentence } from '../core/sentence';
import { useNavigation } from '../state/navigation';
import type { Selected, Selection } from '../state/selection';
import { views } from '../views';
import { Empty } from '../widgets/empty';
import { ErrorBoundary } from '../widgets/failure';
import { Goto } from '../widgets/goto';
import { Skeleton } from '../widgets/loaded';
import { Reading } from '../widgets/reading';
import { ChangeButton } from '../widgets/reading/change_button';
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

function NoTrace({ runs }: { readonly runs: Runs }): ReactNode {
  if (runs.scanning) {
    return (
      <Empty icon="search" title={`Looking for traces in ${runs.logdir}`}>
        <p>Large folders take a moment. This page shows each run as soon as it is found.</p>
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

/** What stands in for the view while its file is not there; the run's other files do not matter. */
function obstacle({ run, span }: Selection): ReactNode | null {
  if (span.state === 'ready') return null;
  if (span.state === 'unreadable') return <Unreadable span={span} />;
  return <Reading run={run} trace={span.trace} />;
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
  const instead = obstacle(selection);
  if (instead) {
    return (
      <div className="page">
        {title}
        {instead}
      </div>
    );
  }
  return (
    <ErrorBoundary what={view.title} key={`${view.id} ${span.trace}`}>
      {title}
      <Caution selection={selection} restsOn={view.restsOn} />
      <Suspense fallback={<Skeleton />}>
        <Page selection={selection} />
      </Suspense>
    </ErrorBoundary>
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
