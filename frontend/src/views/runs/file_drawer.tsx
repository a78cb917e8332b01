import type { ReactNode } from 'react';
import { bytes, count, quantityExact, recordedTime } from '../../core/format';
import { recordedAt } from '../../core/recorded';
import { sentence } from '../../core/sentence';
import { SeverityBadge } from '../../widgets/badge';
import { Copy } from '../../widgets/copy';
import { Drawer } from '../../widgets/drawer';
import { Goto } from '../../widgets/goto';
import { STATE_WORDS } from '../../widgets/reading/words';
import { FileAction } from './file_action';
import type { FileLine } from './lines';

interface Props {
  readonly line: FileLine;
  readonly close: () => void;
}

interface FieldProps {
  readonly label: string;
  readonly children: ReactNode;
}

function Field({ label, children }: FieldProps): ReactNode {
  return (
    <div className="field">
      <dt>{label}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function WhyNot({ line }: { readonly line: FileLine }): ReactNode {
  const { problem, file } = line.span;
  if (!problem) return null;
  const { path, message, remedy } = problem;
  return (
    <section className="file-problem">
      <h3>Why it could not be read</h3>
      <p>{sentence(message)}</p>
      {remedy !== '' && (
        <>
          <h3>What to do</h3>
          <p>{sentence(remedy)}</p>
        </>
      )}
      <h3>Where</h3>
      <p className="mono">{path}</p>
      <Copy text={() => [file, path, message, remedy].join('\n')} label="Copy details" />
    </section>
  );
}

/** Everything that is known of one file. */
export function FileDrawer({ line, close }: Props): ReactNode {
  const { run, worker, span } = line;
  const to = { run: run.id, worker: worker.name, span: span.label };
  return (
    <Drawer title="File" close={close}>
      <p className="field-name mono">{span.file}</p>
      <div className="row">
        {span.state === 'ready' && (
          <Goto to={{ ...to, view: 'advice' }} className="button">
            Show its advice
          </Goto>
        )}
        <FileAction span={span} />
        <Copy text={span.file} label="Copy name" />
      </div>
      <WhyNot line={line} />
      <dl className="fields">
        <Field label="State">{STATE_WORDS[span.state]}</Field>
        <Field label="Run">{run.name}</Field>
        <Field label="Worker">{worker.name}</Field>
        {worker.rank !== null && <Field label="Rank">{count(worker.rank)}</Field>}
        <Field label="Span">
          {span.label} of {count(worker.spans.length)}
        </Field>
        <Field label="Size">
          {bytes(span.file_bytes)}
          <span className="field-exact">{quantityExact(span.file_bytes, 'bytes')}</span>
        </Field>
        <Field label="Events">{span.events === null ? '–' : count(span.events)}</Field>
        <Field label="Recorded">{recordedTime(recordedAt(span.file)) || '–'}</Field>
        {span.damage && (
          <Field label="Health">
            <Goto to={{ ...to, view: 'health' }}>
              <SeverityBadge severity={span.damage} />
            </Goto>
          </Field>
        )}
      </dl>
    </Drawer>
  );
}
