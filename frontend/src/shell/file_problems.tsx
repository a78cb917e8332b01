import type { ReactNode } from 'react';
import type { Problem, RunState, Runs } from '../api/types.gen';
import { spansOf } from '../core/progress';
import { dismiss, useDismissed } from '../host/dismissed';
import { CloseNotice } from '../widgets/close_notice';
import { Problems } from '../widgets/problems';

interface FileProblem {
  /** Changes with the file, so that a closed notice returns for another problem. */
  readonly key: string;
  readonly problem: Problem;
}

const fileProblem = (problem: Problem, bytes = 0): FileProblem => ({
  key: `${problem.path}\n${problem.message}\n${bytes}`,
  problem,
});

/** The problems of the log directories and of a run's files, or of all files without a run, each once. */
export function problemsOf(runs: Runs, run: RunState | null): FileProblem[] {
  const spans = (run ? [run] : runs.runs).flatMap(spansOf);
  const all = [
    ...runs.problems.map((problem) => fileProblem(problem)),
    ...spans.flatMap(({ problem, file_bytes }) =>
      problem ? [fileProblem(problem, file_bytes)] : [],
    ),
  ];
  const seen = new Map(all.map((item) => [`${item.problem.path}\n${item.problem.message}`, item]));
  return [...seen.values()];
}

interface Props {
  readonly runs: Runs;
  /** The shown run; null where the view shows all runs. */
  readonly run: RunState | null;
}

/** The files that cannot be read, until the user closes the notice. */
export function FileProblems({ runs, run }: Props): ReactNode {
  const dismissed = useDismissed();
  const shown = problemsOf(runs, run).filter(({ key }) => !dismissed.has(key));
  if (shown.length === 0) return null;
  return (
    <div className="closable">
      <Problems problems={shown.map(({ problem }) => problem)} />
      <CloseNotice onClose={() => dismiss(shown.map(({ key }) => key))} />
    </div>
  );
}
