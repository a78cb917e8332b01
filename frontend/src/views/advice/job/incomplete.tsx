import type { ReactNode } from 'react';
import type { Outcome, RunState, Worker } from '../../../api/types.gen';
import { count, plural } from '../../../core/format';
import { sentence } from '../../../core/sentence';
import { type WorkerSpan, workerSpansOf } from '../../../core/traces';
import { SeverityBadge } from '../../../widgets/badge';
import { Goto } from '../../../widgets/goto';
import { Icon } from '../../../widgets/icon';

const MOST_NAMED = 12;
/** Messages with sizes may differ from file to file. */
const MOST_REASONS = 6;

const nameOf = ({ name, rank }: Worker): string => (rank === null ? name : `rank ${rank}`);

function Names(props: { readonly files: readonly WorkerSpan[]; readonly view: string }): ReactNode {
  const { files, view } = props;
  const rest = files.length - MOST_NAMED;
  return (
    <>
      {files.slice(0, MOST_NAMED).map(({ worker, span }, at) => (
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

/** Unreadable files by reason, the most frequent reason first. */
function byProblem(files: readonly WorkerSpan[]): (readonly [string, WorkerSpan[]])[] {
  const byText = new Map<string, WorkerSpan[]>();
  for (const file of files) {
    const { problem } = file.span;
    const text = problem ? `${sentence(problem.message)} ${sentence(problem.remedy)}`.trim() : '';
    byText.set(text, [...(byText.get(text) ?? []), file]);
  }
  return [...byText].sort(([, a], [, b]) => b.length - a.length);
}

const DAMAGES = ['critical', 'warning'] as const;

interface Props {
  readonly run: RunState;
  /** The finding about ranks without traces. */
  readonly missing: Outcome | undefined;
}

/** What the advice lacks: unreadable files, damaged traces, ranks without traces. */
export function Incomplete({ run, missing }: Props): ReactNode {
  const all = workerSpansOf(run);
  const unreadable = all.filter(({ span }) => span.state === 'unreadable');
  const damaged = DAMAGES.map(
    (severity) => [severity, all.filter(({ span }) => span.damage === severity)] as const,
  ).filter(([, group]) => group.length > 0);
  const reasons = byProblem(unreadable);
  const rest = reasons.slice(MOST_REASONS).flatMap(([, group]) => group);
  const readyCount = all.filter(({ span }) => span.state === 'ready').length;
  if (unreadable.length === 0 && damaged.length === 0 && !missing) return null;
  return (
    <section className="card job-incomplete" aria-label="Missing and damaged traces">
      {reasons.slice(0, MOST_REASONS).map(([problem, group]) => (
        <p key={problem}>
          <Icon name="critical" size={15} />
          <span>
            <strong>{plural(group.length, 'file')} could not be read:</strong>{' '}
            <Names files={group} view="runs" />. {problem}
          </span>
        </p>
      ))}
      {rest.length > 0 && (
        <p>
          <Icon name="critical" size={15} />
          <span>
            <strong>{plural(rest.length, 'other file')} for other reasons:</strong>{' '}
            <Names files={rest} view="runs" />.
          </span>
        </p>
      )}
      {damaged.map(([severity, group]) => (
        <p key={severity}>
          <SeverityBadge severity={severity} />
          <span>
            <strong>{plural(group.length, 'trace is', 'traces are')} damaged:</strong>{' '}
            {group.length > readyCount / 2 ? (
              <Goto to={{ view: 'health' }}>details</Goto>
            ) : (
              <Names files={group} view="health" />
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
