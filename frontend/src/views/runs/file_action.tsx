import type { ReactNode } from 'react';
import type { RunState, Span } from '../../api/types.gen';
import { count } from '../../core/format';
import { isPending, spansOf } from '../../core/progress';
import { ChangeButton } from '../../widgets/reading/change_button';

/** Cancels the reading of a file, or reads it again after a failure. */
export function FileAction({ span }: { readonly span: Span }): ReactNode {
  const { trace: id, file } = span;
  if (isPending(span)) {
    return (
      <ChangeButton change={{ what: 'cancel', of: 'traces', id }} about={file}>
        Cancel
      </ChangeButton>
    );
  }
  if (span.state === 'ready') return null;
  return (
    <ChangeButton change={{ what: 'read', of: 'traces', id }} about={file}>
      Read again
    </ChangeButton>
  );
}

/** The same for all files of a run. */
export function RunAction({ run }: { readonly run: RunState }): ReactNode {
  const spans = spansOf(run);
  const [first] = spans;
  if (first && spans.length === 1) return <FileAction span={first} />;
  const pending = spans.filter(isPending).length;
  const ended = spans.filter(({ state }) => state === 'cancelled' || state === 'unreadable').length;
  if (pending > 0) {
    return (
      <ChangeButton change={{ what: 'cancel', of: 'runs', id: run.id }} about={`of ${run.name}`}>
        Cancel {count(pending)}
      </ChangeButton>
    );
  }
  if (ended === 0) return null;
  return (
    <ChangeButton change={{ what: 'read', of: 'runs', id: run.id }} about={`of ${run.name}`}>
      Read {count(ended)} again
    </ChangeButton>
  );
}
