import type { ReactNode } from 'react';
import type { RunState } from '../../api/types.gen';
import { count } from '../../core/format';
import { isPending, progressOf, spansOf } from '../../core/progress';
import { WholeBar, Words } from '.';
import { ChangeButton } from './change_button';
import { usePace } from './use_pace';
import { wholeWords } from './words';
import './reading.css';

/** The progress of reading, above a view of the whole run. */
export function RunProgress({ run }: { readonly run: RunState }): ReactNode {
  const spans = spansOf(run);
  const progress = progressOf(spans);
  const pace = usePace(run.id, progress);
  if (spans.length < 2 || !spans.some(isPending)) return null;
  const { doneCount, totalCount } = progress;
  return (
    <aside className="run-progress notice framed no-print" aria-label={`Reading ${run.name}`}>
      <div className="wrap">
        <strong className="number">
          {count(doneCount)} of {count(totalCount)} read
        </strong>
        <span className="muted">
          The data below covers these files and is updated automatically.
        </span>
        <Words words={wholeWords(progress, pace).slice(1)} />
      </div>
      <WholeBar progress={progress} label={`Reading ${run.name}`} />
      <ChangeButton change={{ what: 'cancel', of: 'runs', id: run.id }} about={`of ${run.name}`}>
        Stop reading
      </ChangeButton>
    </aside>
  );
}
