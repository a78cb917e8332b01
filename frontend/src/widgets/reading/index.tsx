import { type ReactNode, useEffect } from 'react';
import { useChange } from '../../api/queries';
import type { RunState, Span } from '../../api/types.gen';
import { count, plural } from '../../core/format';
import { doneShare, isPending, type Progress, progressOf, spansOf } from '../../core/progress';
import { sentence } from '../../core/sentence';
import { type WorkerSpan, workerSpansOf } from '../../core/traces';
import { Goto } from '../goto';
import { ChangeButton } from './change_button';
import { usePace } from './use_pace';
import { fileWords, isCounted, wholeWords } from './words';
import './reading.css';

/** Limit of listed files; the total is above them. */
const MOST_ROWS = 24;

/** Order: the requested file, then files that are being read. */
function urgency({ span }: WorkerSpan, trace: string): number {
  if (span.trace === trace) return 0;
  return span.state === 'reading' ? 1 : 2;
}

/** The files of a short list; of a long list the active ones. The requested file comes first. */
function shownOf(files: readonly WorkerSpan[], trace: string): WorkerSpan[] {
  const urgent = files.toSorted((a, b) => urgency(a, trace) - urgency(b, trace));
  const active = urgent.filter((file) => urgency(file, trace) < 2);
  const isMany = files.length > MOST_ROWS && active.length > 0;
  const shown = new Set((isMany ? active : urgent).slice(0, MOST_ROWS));
  const first = (file: WorkerSpan): number => Number(file.span.trace === trace);
  return files.filter((file) => shown.has(file)).toSorted((a, b) => first(b) - first(a));
}

/** Requests the shown file to be read first. */
function useReadFirst(span: Span | undefined): void {
  const { mutate } = useChange();
  const id = span?.state === 'queued' ? span.trace : null;
  useEffect(() => {
    if (id !== null) mutate({ what: 'read', of: 'traces', id });
  }, [id, mutate]);
}

export function Words({ words }: { readonly words: readonly string[] }): ReactNode {
  return (
    <p className="words note">
      {words.map((word) => (
        <span key={word}>{word}</span>
      ))}
    </p>
  );
}

function Bar({ span }: { readonly span: Span }): ReactNode {
  const { state, progress, file } = span;
  if (state !== 'reading' || progress?.phase === 'waiting') return null;
  const counted = isCounted(span) && progress;
  return counted ? (
    <progress value={counted.bytes_done} max={counted.bytes_total} aria-label={`Reading ${file}`} />
  ) : (
    <progress aria-label={`Reading ${file}`} />
  );
}

export function WholeBar(props: {
  readonly progress: Progress;
  readonly label: string;
}): ReactNode {
  return <progress value={doneShare(props.progress)} max={1} aria-label={props.label} />;
}

interface RowProps extends WorkerSpan {
  /** True for the file that the page shows. */
  readonly isRequested: boolean;
}

function Row({ worker, span, isRequested }: RowProps): ReactNode {
  const { trace, file, problem } = span;
  return (
    <li className="file" aria-current={isRequested ? 'true' : undefined}>
      <div className="file-name">
        <strong>{worker.spans.length > 1 ? `${worker.name} · ${span.label}` : worker.name}</strong>
        {isRequested && ' · selected'}
        <span className="note">{file}</span>
      </div>
      <div className="file-progress">
        <Bar span={span} />
        <Words words={fileWords(span)} />
        {problem && <p>{sentence(problem.message)}</p>}
      </div>
      {isPending(span) ? (
        <ChangeButton change={{ what: 'cancel', of: 'traces', id: trace }} about={file}>
          Cancel
        </ChangeButton>
      ) : (
        <ChangeButton change={{ what: 'read', of: 'traces', id: trace }} about={file}>
          Read again
        </ChangeButton>
      )}
    </li>
  );
}

/** Buttons for all files of the run. */
function ForAll({ run }: { readonly run: RunState }): ReactNode {
  const spans = spansOf(run);
  const pending = spans.filter(isPending).length;
  const cancelled = spans.filter((span) => span.state === 'cancelled').length;
  return (
    <div className="row">
      {pending > 1 && (
        <ChangeButton change={{ what: 'cancel', of: 'runs', id: run.id }} about={`of ${run.name}`}>
          Cancel all {count(pending)}
        </ChangeButton>
      )}
      {cancelled > 1 && (
        <ChangeButton change={{ what: 'read', of: 'runs', id: run.id }} about={`of ${run.name}`}>
          Read all {count(cancelled)} again
        </ChangeButton>
      )}
    </div>
  );
}

function Ready({ files }: { readonly files: readonly WorkerSpan[] }): ReactNode {
  const [first] = files;
  if (!first) return null;
  const { worker, span } = first;
  return (
    <p>
      {plural(files.length, 'file of this run is', 'files of this run are')} ready:{' '}
      <Goto to={{ worker: worker.name, span: span.label }}>
        show {worker.name}, span {span.label}
      </Goto>
    </p>
  );
}

interface Props {
  readonly run: RunState;
  /** The file that the page shows. */
  readonly trace: string;
}

/** The progress of reading a run, or a note that it was cancelled. */
export function Reading({ run, trace }: Props): ReactNode {
  const files = workerSpansOf(run);
  const others = files.filter(({ span }) => span.state !== 'ready');
  const progress = progressOf(spansOf(run));
  const pace = usePace(run.id, progress);
  useReadFirst(files.find(({ span }) => span.trace === trace)?.span);
  const shown = shownOf(others, trace);
  const isGoingOn = files.some(({ span }) => isPending(span));
  return (
    <section className="card reading" aria-labelledby="reading">
      <div className="card-head">
        <h2 id="reading">
          {isGoingOn ? `Reading ${run.name}` : `Reading ${run.name} was cancelled`}
        </h2>
        <ForAll run={run} />
      </div>
      {isGoingOn ? (
        files.length > 1 && (
          <div className="reading-whole">
            <WholeBar progress={progress} label={`Reading ${run.name}`} />
            <Words words={wholeWords(progress, pace)} />
          </div>
        )
      ) : (
        <p className="muted">Its data appears after it is read. No file was changed.</p>
      )}
      <Ready files={files.filter(({ span }) => span.state === 'ready')} />
      <ul>
        {shown.map(({ worker, span }) => (
          <Row
            key={span.trace}
            worker={worker}
            span={span}
            isRequested={span.trace === trace && files.length > 1}
          />
        ))}
      </ul>
      {others.length > shown.length && (
        <p className="muted">and {plural(others.length - shown.length, 'other file')}</p>
      )}
    </section>
  );
}
