import type { ReactNode } from 'react';
import type { RunState, Span } from '../../api/types.gen';
import { bytes, count, plural } from '../../core/format';
import { spansOf } from '../../core/progress';
import { type WorkerSpan, workerSpansOf } from '../../core/traces';
import { SeverityBadge } from '../../widgets/badge';
import { Card } from '../../widgets/card';
import { Goto } from '../../widgets/goto';
import { PlainTable } from '../../widgets/plain_table';
import { STATE_WORDS } from '../../widgets/reading/words';

function Damage({ span }: { readonly span: Span }): ReactNode {
  if (span.damage) return <SeverityBadge severity={span.damage} />;
  return <span className="muted">{span.state === 'ready' ? 'none' : '–'}</span>;
}

interface Props {
  readonly run: RunState;
  /** The shown trace. */
  readonly trace: string;
}

/** Most rows of the table: a run may have a thousand ranks. */
const MOST_ROWS = 50;

/** The shown file, then damaged and unreadable ones, then the others. */
function firstOf(run: RunState, trace: string): readonly WorkerSpan[] {
  const all = workerSpansOf(run);
  if (all.length <= MOST_ROWS) return all;
  const rank = ({ span }: WorkerSpan): number => {
    if (span.trace === trace) return 0;
    return span.damage !== null || span.state === 'unreadable' ? 1 : 2;
  };
  return all.toSorted((a, b) => rank(a) - rank(b)).slice(0, MOST_ROWS);
}

/** The files of the run, if there are several. */
export function Files({ run, trace }: Props): ReactNode {
  const spans = spansOf(run);
  if (spans.length < 2) return null;
  const damaged = spans.filter((span) => span.damage !== null).length;
  return (
    <Card
      className="run-files"
      label="Files of this run"
      title="Files of this run"
      note={`${plural(spans.length, 'file')}, ${damaged === 0 ? 'none' : count(damaged)} of them damaged`}
    >
      <div className="scroll-x">
        <PlainTable
          rows={firstOf(run, trace)}
          keyOf={({ span }) => span.trace}
          rowProps={({ span }) => ({ 'aria-current': span.trace === trace ? 'true' : undefined })}
          columns={[
            {
              label: 'Trace',
              isHeader: true,
              cell: ({ worker, span }) => (
                <Goto to={{ worker: worker.name, span: span.label }}>
                  {worker.name}, span {span.label}
                </Goto>
              ),
            },
            { label: 'File', className: 'mono excerpt', cell: ({ span }) => span.file },
            {
              label: 'State',
              cell: ({ span }) => (
                <>
                  <span className={`dot dot-${span.state}`} /> {STATE_WORDS[span.state]}
                </>
              ),
            },
            { label: 'On disk', isNumber: true, cell: ({ span }) => bytes(span.file_bytes) },
            {
              label: 'Events',
              isNumber: true,
              cell: ({ span }) => (span.events === null ? '–' : count(span.events)),
            },
            { label: 'Damage', cell: ({ span }) => <Damage span={span} /> },
          ]}
        />
      </div>
      {spans.length > MOST_ROWS && (
        <p>
          The shown file, damaged ones, then others: {MOST_ROWS} of {count(spans.length)}.{' '}
          <Goto to={{ view: 'runs', search: run.name }}>All files</Goto>
        </p>
      )}
    </Card>
  );
}
