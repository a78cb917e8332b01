import { type ReactNode, Suspense } from 'react';
import type { Problem, Runs } from '../api/types.gen';
import { sentence } from '../core/sentence';
import { useNavigation } from '../state/navigation';
import type { Selected, Selection } from '../state/selection';
import { views } from '../views';
import type { View } from '../views/view';
import { Empty } from '../widgets/empty';
import { ErrorBoundary } from '../widgets/failure';
import { Goto } from '../widgets/goto';
import { Skeleton } from '../widgets/loaded';
import { Reading } from '../widgets/reading';
import { RecordHint } from '../widgets/record_hint';

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

function Unreadable({
  problem,
  name,
}: {
  readonly problem: Problem | null;
  readonly name: string;
}): ReactNode {
  return (
    <Empty icon="critical" tone="bad" title={`${name} could not be read`}>
      {problem && (
        <>
          <p>
            <code>{problem.path}</code>
          </p>
          <p>{sentence(problem.message)}</p>
          <p>{sentence(problem.remedy)}</p>
        </>
      )}
    </Empty>
  );
}

/** What stands in for the view while its files are not there. */
function obstacle(view: View, { run, span }: Selection): ReactNode | null {
  const state = view.needs === 'run' ? run.state : span.state;
  if (state === 'ready') return null;
  if (state !== 'unreadable') return <Reading run={run} />;
  const name = view.needs === 'run' ? run.name : span.file;
  return <Unreadable problem={span.problem} name={name} />;
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
  const instead = obstacle(view, selection);
  if (instead) return <div className="page">{instead}</div>;
  const { Page } = view;
  return (
    <ErrorBoundary what={view.title} key={`${view.id} ${selection.span.trace}`}>
      <h1 className="visually-hidden">
        {view.title} of {selection.run.name}, {selection.worker.name}, span {selection.span.label}
      </h1>
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
      {selected.kind === 'empty' ? <NoTrace runs={runs} /> : <UnknownRun name={selected.name} />}
    </div>
  );
}
