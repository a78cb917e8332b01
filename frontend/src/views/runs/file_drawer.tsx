import type { ReactNode } from 'react';
import { bytes, count, quantityExact, recordedTime } from '../../core/format';
import { recordedAt } from '../../core/recorded';
import { sentence } from '../../core/sentence';
import { SeverityBadge } from '../../widgets/badge';
import { Copy } from '../../widgets/copy';
import { Drawer } from '../../widgets/drawer';
import { type Fact, Facts } from '../../widgets/facts';
import { Goto } from '../../widgets/goto';
import { STATE_WORDS } from '../../widgets/reading/words';
import { FileAction } from './file_action';
import type { FileLine } from './lines';

interface Props {
  readonly line: FileLine;
  readonly close: () => void;
}

function ReadProblem({ line }: { readonly line: FileLine }): ReactNode {
  const { problem, file } = line.span;
  if (!problem) return null;
  const { path, message, remedy } = problem;
  return (
    <section className="file-problem notice-bad">
      <h3>Why the file could not be read</h3>
      <p>{sentence(message)}</p>
      {remedy !== '' && (
        <>
          <h3>What to do</h3>
          <p>{sentence(remedy)}</p>
        </>
      )}
      <h3>Path</h3>
      <p className="mono">{path}</p>
      <Copy text={() => [file, path, message, remedy].join('\n')} label="Copy details" />
    </section>
  );
}

/** The details of a file. */
export function FileDrawer({ line, close }: Props): ReactNode {
  const { run, worker, span } = line;
  const to = { run: run.id, worker: worker.name, span: span.label };
  const facts: Fact[] = [
    ['State', STATE_WORDS[span.state]],
    ['Run', run.name],
    ['Worker', worker.name],
    worker.rank !== null && ['Rank', count(worker.rank)],
    ['Span', `${span.label} of ${count(worker.spans.length)}`],
    [
      'Size',
      <span key="size">
        {bytes(span.file_bytes)}
        <span className="field-exact note">{quantityExact(span.file_bytes, 'bytes')}</span>
      </span>,
    ],
    ['Events', span.events === null ? '–' : count(span.events)],
    ['Recorded', recordedTime(recordedAt(span.file)) || '–'],
    span.damage && [
      'Health',
      <Goto key="health" to={{ ...to, view: 'health' }}>
        <SeverityBadge severity={span.damage} />
      </Goto>,
    ],
  ];
  return (
    <Drawer title="File" close={close}>
      <p className="field-name mono">{span.file}</p>
      <div className="row">
        {span.state === 'ready' && (
          <Goto to={{ ...to, view: 'advice' }} className="button">
            Show advice
          </Goto>
        )}
        <FileAction span={span} />
        <Copy text={span.file} label="Copy name" />
      </div>
      <ReadProblem line={line} />
      <Facts className="fields" facts={facts} />
    </Drawer>
  );
}
