import type { ReactNode } from 'react';
import type { RunState, Span } from '../api/types.gen';
import { bytes, count } from '../core/format';
import './reading.css';

const WAITING = { queued: 'waiting', ready: 'ready', unreadable: 'unreadable' } as const;

function Progress({ span }: { readonly span: Span }): ReactNode {
  const { progress } = span;
  if (span.state !== 'reading' || !progress) {
    return <td colSpan={3}>{span.state === 'reading' ? 'starting' : WAITING[span.state]}</td>;
  }
  const { phase, bytes_done, bytes_total, events } = progress;
  return (
    <>
      <td>{phase}</td>
      <td className="reading-bar">
        <progress
          value={bytes_done}
          max={Math.max(1, bytes_total)}
          aria-label={`Reading ${span.file}`}
        />
        <span>
          {bytes(bytes_done)} of {bytes(bytes_total)}
        </span>
      </td>
      <td className="number">{count(events)} events</td>
    </>
  );
}

/** How far the reading of a run's files has come. */
export function Reading({ run }: { readonly run: RunState }): ReactNode {
  const spans = run.workers.flatMap((worker) => worker.spans.map((span) => ({ worker, span })));
  return (
    <section className="card reading" aria-busy="true">
      <h2>Reading {run.name}</h2>
      <div className="scroll-x">
        <table>
          <thead>
            <tr>
              <th scope="col">File</th>
              <th scope="col">Phase</th>
              <th scope="col">Read</th>
              <th scope="col" className="number">
                Events
              </th>
            </tr>
          </thead>
          <tbody>
            {spans.map(({ worker, span }) => (
              <tr key={span.trace}>
                <th scope="row" title={span.file}>
                  {worker.name} · {span.label}
                  <span className="reading-file">{span.file}</span>
                </th>
                <Progress span={span} />
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
