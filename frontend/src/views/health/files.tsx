import type { ReactNode } from 'react';
import type { RunState, Span, Worker } from '../../api/types.gen';
import { bytes, count, plural } from '../../core/format';
import { spansOf } from '../../core/progress';
import { SeverityBadge } from '../../widgets/badge';
import { Goto } from '../../widgets/goto';
import { STATE_WORDS } from '../../widgets/reading/words';

function Damage({ span }: { readonly span: Span }): ReactNode {
  if (span.damage) return <SeverityBadge severity={span.damage} />;
  return <span className="muted">{span.state === 'ready' ? 'none' : '–'}</span>;
}

function Row(props: {
  readonly worker: Worker;
  readonly span: Span;
  readonly isShown: boolean;
}): ReactNode {
  const { worker, span, isShown } = props;
  return (
    <tr aria-current={isShown ? 'true' : undefined}>
      <th scope="row">
        <Goto to={{ worker: worker.name, span: span.label }}>
          {worker.name}, span {span.label}
        </Goto>
      </th>
      <td className="mono excerpt">{span.file}</td>
      <td>
        <span className={`dot dot-${span.state}`} /> {STATE_WORDS[span.state]}
      </td>
      <td className="number">{bytes(span.file_bytes)}</td>
      <td className="number">{span.events === null ? '–' : count(span.events)}</td>
      <td>
        <Damage span={span} />
      </td>
    </tr>
  );
}

interface Props {
  readonly run: RunState;
  /** The recording that is shown. */
  readonly trace: string;
}

/** More rows than anyone reads: a run may have a thousand ranks. */
const MOST_ROWS = 50;

interface Recording {
  readonly worker: Worker;
  readonly span: Span;
}

/** What matters first: what is shown, what is damaged or unreadable, then the others in their order. */
function firstOf(run: RunState, trace: string): readonly Recording[] {
  const all = run.workers.flatMap((worker) => worker.spans.map((span) => ({ worker, span })));
  if (all.length <= MOST_ROWS) return all;
  const rank = ({ span }: Recording): number => {
    if (span.trace === trace) return 0;
    return span.damage !== null || span.state === 'unreadable' ? 1 : 2;
  };
  return all.toSorted((a, b) => rank(a) - rank(b)).slice(0, MOST_ROWS);
}

/** All files of the run side by side, where there are several; of very many those that matter. */
export function Files({ run, trace }: Props): ReactNode {
  const spans = spansOf(run);
  if (spans.length < 2) return null;
  const damaged = spans.filter((span) => span.damage !== null).length;
  return (
    <section className="card run-files" aria-labelledby="run-files">
      <div className="card-head">
        <h2 id="run-files">Files of this run</h2>
        <p>
          {plural(spans.length, 'file')}, {damaged === 0 ? 'none' : count(damaged)} of them damaged
        </p>
      </div>
      <div className="scroll-x">
        <table className="plain">
          <thead>
            <tr>
              <th scope="col">Recording</th>
              <th scope="col">File</th>
              <th scope="col">State</th>
              <th scope="col" className="number">
                On disk
              </th>
              <th scope="col" className="number">
                Events
              </th>
              <th scope="col">Damage</th>
            </tr>
          </thead>
          <tbody>
            {firstOf(run, trace).map(({ worker, span }) => (
              <Row key={span.trace} worker={worker} span={span} isShown={span.trace === trace} />
            ))}
          </tbody>
        </table>
      </div>
      {spans.length > MOST_ROWS && (
        <p>
          The shown one, the damaged and the first others: {MOST_ROWS} of {count(spans.length)}.{' '}
          <Goto to={{ view: 'runs', search: run.name }}>All of them</Goto>
        </p>
      )}
    </section>
  );
}
