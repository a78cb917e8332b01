import type { ReactNode } from 'react';
import type { Outcome, RunState, Span, Worker } from '../../../api/types.gen';
import { count, plural } from '../../../core/format';
import { sentence } from '../../../core/sentence';
import { SeverityBadge } from '../../../widgets/badge';
import { Goto } from '../../../widgets/goto';
import { Icon } from '../../../widgets/icon';

const MOST_NAMED = 12;
/** Messages that tell sizes may differ from file to file. */
const MOST_REASONS = 6;

interface Recording {
  readonly worker: Worker;
  readonly span: Span;
}

const nameOf = ({ name, rank }: Worker): string => (rank === null ? name : `rank ${rank}`);

function Names(props: {
  readonly recordings: readonly Recording[];
  readonly view: string;
}): ReactNode {
  const { recordings, view } = props;
  const rest = recordings.length - MOST_NAMED;
  return (
    <>
      {recordings.slice(0, MOST_NAMED).map(({ worker, span }, at) => (
        <span key={span.trace}>
          {at > 0 && ', '}
          <Goto to={{ view, worker: worker.name, span: span.label }} title={span.file}>
            {nameOf(worker)}
          </Goto>
        </span>
      ))}
      {rest > 0 && ` and ${count(rest)} more`}
    </>
  );
}

/** Files that failed for the same reason, together, the reason of most of them first. */
function byProblem(recordings: readonly Recording[]): (readonly [string, Recording[]])[] {
  const found = new Map<string, Recording[]>();
  for (const each of recordings) {
    const { problem } = each.span;
    const words = problem ? `${sentence(problem.message)} ${sentence(problem.remedy)}`.trim() : '';
    found.set(words, [...(found.get(words) ?? []), each]);
  }
  return [...found].sort(([, a], [, b]) => b.length - a.length);
}

const DAMAGES = ['critical', 'warning'] as const;

interface Props {
  readonly run: RunState;
  /** The finding that ranks of the job have no recording. */
  readonly missing: Outcome | undefined;
}

/** What of the job cannot be told, before what can: files that could not be read, damaged ones, ranks without one. */
export function Incomplete({ run, missing }: Props): ReactNode {
  const all = run.workers.flatMap((worker) => worker.spans.map((span) => ({ worker, span })));
  const unreadable = all.filter(({ span }) => span.state === 'unreadable');
  const damaged = DAMAGES.map(
    (severity) => [severity, all.filter(({ span }) => span.damage === severity)] as const,
  ).filter(([, own]) => own.length > 0);
  const reasons = byProblem(unreadable);
  const rest = reasons.slice(MOST_REASONS).flatMap(([, own]) => own);
  const known = all.filter(({ span }) => span.state === 'ready').length;
  if (unreadable.length === 0 && damaged.length === 0 && !missing) return null;
  return (
    <section className="card job-incomplete" aria-label="What is not whole">
      {reasons.slice(0, MOST_REASONS).map(([words, own]) => (
        <p key={words}>
          <Icon name="critical" size={15} />
          <span>
            <strong>{plural(own.length, 'file')} could not be read:</strong>{' '}
            <Names recordings={own} view="runs" />. {words}
          </span>
        </p>
      ))}
      {rest.length > 0 && (
        <p>
          <Icon name="critical" size={15} />
          <span>
            <strong>{plural(rest.length, 'other file')} for other reasons:</strong>{' '}
            <Names recordings={rest} view="runs" />.
          </span>
        </p>
      )}
      {damaged.map(([severity, own]) => (
        <p key={severity}>
          <SeverityBadge severity={severity} />
          <span>
            <strong>{plural(own.length, 'recording is', 'recordings are')} damaged:</strong>{' '}
            {own.length > known / 2 ? (
              <Goto to={{ view: 'health' }}>what they lack</Goto>
            ) : (
              <Names recordings={own} view="health" />
            )}
            .
          </span>
        </p>
      ))}
      {missing && (
        <p>
          <SeverityBadge severity={missing.severity ?? 'info'} />
          <span>
            <strong>{missing.title}:</strong> {missing.message}
          </span>
        </p>
      )}
    </section>
  );
}
