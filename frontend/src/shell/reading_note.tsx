import type { ReactNode } from 'react';
import type { RunState, Runs } from '../api/types.gen';
import { plural, roughly } from '../core/format';
import { isPending, progressOf, spansOf } from '../core/progress';
import { Goto } from '../widgets/goto';
import { Menu } from '../widgets/menu';
import { WholeBar, Words } from '../widgets/reading';
import { ChangeButton } from '../widgets/reading/change_button';
import { usePace } from '../widgets/reading/use_pace';
import { fileWords, wholeWords } from '../widgets/reading/words';

const MOST_RUNS = 12;

function RunReading({ run }: { readonly run: RunState }): ReactNode {
  const spans = spansOf(run);
  const progress = progressOf(spans);
  const pace = usePace(run.id, progress);
  const [first] = spans;
  return (
    <li>
      <Goto to={{ run: run.id }} className="ellipsis strong">
        {run.name}
      </Goto>
      <ChangeButton change={{ what: 'cancel', of: 'runs', id: run.id }} about={run.name}>
        Cancel
      </ChangeButton>
      <div className="run-reading-progress">
        <WholeBar progress={progress} label={`Reading ${run.name}`} />
        <Words
          words={first && spans.length === 1 ? fileWords(first) : wholeWords(progress, pace)}
        />
      </div>
    </li>
  );
}

/** Runs that are being read come before queued runs. */
const byActivity = (a: RunState, b: RunState): number =>
  Number(a.state === 'queued') - Number(b.state === 'queued');

/** The progress of reading, with a menu of the runs. */
export function ReadingNote({ runs }: { readonly runs: Runs }): ReactNode {
  const pending = runs.runs.filter((run) => spansOf(run).some(isPending)).toSorted(byActivity);
  const progress = progressOf(runs.runs.flatMap(spansOf));
  const pace = usePace('all runs', progress);
  if (pending.length === 0) return null;
  const toGo = progress.totalCount - progress.doneCount;
  return (
    <Menu
      title="Files being read"
      label={
        <span className="flex">
          <span className="dot dot-reading" />
          <span className="reading-note-words">reading</span> {plural(toGo, 'file')}
          {pace.leftNs !== null && <span className="muted">{roughly(pace.leftNs)}</span>}
        </span>
      }
    >
      <div className="all-reading">
        <ul>
          {pending.slice(0, MOST_RUNS).map((run) => (
            <RunReading key={run.id} run={run} />
          ))}
        </ul>
        {pending.length > MOST_RUNS && (
          <p className="muted">and {pending.length - MOST_RUNS} other runs, in the queue</p>
        )}
      </div>
    </Menu>
  );
}
