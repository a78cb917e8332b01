import type { ReactNode } from 'react';
import type { RunState, Span } from '../../api/types.gen';
import { plural } from '../../core/format';
import { isPending, progressOf, spansOf } from '../../core/progress';
import { sentence } from '../../core/sentence';
import { WholeBar, Words } from '../../widgets/reading';
import { fileWords, isCounted, STATE_WORDS, wholeWords } from '../../widgets/reading/words';

function Dot({ state }: { readonly state: Span['state'] }): ReactNode {
  return (
    <span className="inline">
      <span className={`dot dot-${state}`} aria-hidden="true" />
      {STATE_WORDS[state]}
    </span>
  );
}

function Bar({ span }: { readonly span: Span }): ReactNode {
  const { progress, file } = span;
  if (!progress || progress.phase === 'waiting') return null;
  return isCounted(span) ? (
    <progress
      value={progress.bytes_done}
      max={progress.bytes_total}
      aria-label={`Reading ${file}`}
    />
  ) : (
    <progress aria-label={`Reading ${file}`} />
  );
}

/** The texts of a pending file; a queued one shows its position in the queue. */
const wordsOf = (span: Span): readonly string[] =>
  span.state === 'queued' ? ['waiting', ...fileWords(span).slice(0, 1)] : fileWords(span);

/** The state of a file: progress of reading, or the problem. */
export function FileState({ span }: { readonly span: Span }): ReactNode {
  const { state, problem } = span;
  if (state === 'reading' || state === 'queued') {
    return (
      <div className="cell-progress">
        {state === 'reading' && <Bar span={span} />}
        <Words words={wordsOf(span)} />
      </div>
    );
  }
  return (
    <>
      <Dot state={state} />
      {problem && (
        <span className="run-problem bad ellipsis" title={`${problem.message}\n${problem.remedy}`}>
          {sentence(problem.message)} {sentence(problem.remedy)}
        </span>
      )}
    </>
  );
}

/** The same for a run. */
export function RunStateCell({ run }: { readonly run: RunState }): ReactNode {
  const spans = spansOf(run);
  const [first] = spans;
  if (first && spans.length === 1) return <FileState span={first} />;
  const progress = progressOf(spans);
  if (spans.some(isPending)) {
    return (
      <div className="cell-progress">
        <WholeBar progress={progress} label={`Reading ${run.name}`} />
        <Words words={wholeWords(progress)} />
      </div>
    );
  }
  const notes = (['unreadable', 'cancelled'] as const).flatMap((state) => {
    const size = spans.filter((span) => span.state === state).length;
    return size > 0 && size < spans.length ? [`${plural(size, 'file')} ${STATE_WORDS[state]}`] : [];
  });
  return (
    <>
      <Dot state={run.state} />
      {notes.length > 0 && <span className="run-problem bad ellipsis">{notes.join(', ')}</span>}
    </>
  );
}
