import type { ReactNode } from 'react';
import type { RunState, Span } from '../../api/types.gen';
import { bytes, count, plural, quantityExact, recordedTime } from '../../core/format';
import { spansOf } from '../../core/progress';
import type { Patch } from '../../state/navigation';
import { SyntheticBadge } from '../../widgets/badge';
import { Goto } from '../../widgets/goto';
import { Icon } from '../../widgets/icon';
import { FileAction, RunAction } from './file_action';
import {
  bytesOf,
  damageOf,
  eventsOf,
  type FileLine,
  type Line,
  latestOf,
  type RunLine,
} from './lines';
import { FileState, RunStateCell } from './state_cell';

export interface LineActions {
  readonly toggleOpen: (run: RunState) => void;
  /** Marks a run (by id) or a file (by trace) for a comparison. */
  readonly toggleMarked: (key: string) => void;
  readonly isMarked: (key: string) => boolean;
  readonly select: (line: FileLine) => void;
}

function Health({ spans, to }: { readonly spans: readonly Span[]; readonly to: Patch }): ReactNode {
  const damage = damageOf(spans);
  if (!damage) return null;
  return (
    <Goto
      to={{ ...to, view: 'health' }}
      className={`inline severity-${damage}`}
      title="Damaged: show its health"
    >
      <Icon name={damage} size={16} />
      <span className="visually-hidden">damaged, {damage}</span>
    </Goto>
  );
}

interface MarkProps {
  readonly id: string;
  readonly name: string;
  readonly actions: LineActions;
}

function MarkBox({ id, name, actions }: MarkProps): ReactNode {
  return (
    <td className="run-choose">
      <input
        type="checkbox"
        aria-label={`Select ${name} to compare`}
        checked={actions.isMarked(id)}
        onChange={() => actions.toggleMarked(id)}
      />
    </td>
  );
}

interface FactsProps {
  readonly spans: readonly Span[];
  readonly to: Patch;
}

/** Size, events, time and health of some files. */
function Facts({ spans, to }: FactsProps): ReactNode {
  const size = bytesOf(spans);
  const events = eventsOf(spans);
  return (
    <>
      <td className="number" title={quantityExact(size, 'bytes')}>
        {bytes(size)}
      </td>
      <td className="number">
        {events === null ? <span className="muted">–</span> : count(events)}
      </td>
      <td className="run-time">{recordedTime(latestOf(spans)) || '–'}</td>
      <td className="run-health">
        <Health spans={spans} to={to} />
      </td>
    </>
  );
}

function sizeOf(run: RunState): string {
  const workers = plural(run.workers.length, 'worker');
  const files = spansOf(run).length;
  return run.workers.length === files ? workers : `${workers}, ${plural(files, 'file')}`;
}

interface RunProps {
  readonly line: RunLine;
  readonly actions: LineActions;
}

function Unfold({ line, actions }: RunProps): ReactNode {
  const { run, isOpen } = line;
  if (spansOf(run).length === 1) return <span className="run-fold" />;
  return (
    <button
      type="button"
      className="run-fold"
      aria-expanded={isOpen}
      aria-label={`Files of ${run.name}`}
      onClick={() => actions.toggleOpen(run)}
    >
      <Icon name="chevron" size={14} />
    </button>
  );
}

function FileButton({
  line,
  actions,
}: {
  readonly line: FileLine;
  readonly actions: LineActions;
}): ReactNode {
  return (
    <button
      type="button"
      className="run-file ellipsis note"
      title="Details of this file"
      onClick={() => actions.select(line)}
    >
      {line.span.file}
    </button>
  );
}

function RunCells({ line, actions }: RunProps): ReactNode {
  const { run, files } = line;
  const spans = spansOf(run);
  const [only] = files;
  const to = { run: run.id, worker: null, span: null };
  return (
    <>
      <MarkBox id={run.id} name={run.name} actions={actions} />
      <th scope="row">
        <div className="run-name flex">
          <Unfold line={line} actions={actions} />
          <div>
            <Goto to={{ ...to, view: 'advice' }} className="run-link ellipsis" title="Show advice">
              {run.name}
            </Goto>
            {run.synthetic && <SyntheticBadge />}
            {spans.length === 1 && only ? (
              <FileButton line={only} actions={actions} />
            ) : (
              <span className="run-made ellipsis note">{sizeOf(run)}</span>
            )}
          </div>
        </div>
      </th>
      <td>
        <RunStateCell run={run} />
      </td>
      <Facts spans={spans} to={to} />
      <td className="run-action">
        <RunAction run={run} />
      </td>
    </>
  );
}

function FileCells({
  line,
  actions,
}: {
  readonly line: FileLine;
  readonly actions: LineActions;
}): ReactNode {
  const { run, worker, span } = line;
  const to = { run: run.id, worker: worker.name, span: span.label };
  return (
    <>
      <MarkBox id={span.trace} name={span.file} actions={actions} />
      <th scope="row" className="run-inner">
        <Goto to={{ ...to, view: 'advice' }} className="run-link ellipsis" title="Show advice">
          {worker.name}
          {worker.spans.length > 1 && `, span ${span.label}`}
        </Goto>
        {worker.rank !== null && <span className="tag">rank {count(worker.rank)}</span>}
        <FileButton line={line} actions={actions} />
      </th>
      <td>
        <FileState span={span} />
      </td>
      <Facts spans={[span]} to={to} />
      <td className="run-action">
        <FileAction span={span} />
      </td>
    </>
  );
}

/** One line of the table: a run, or one of its files. */
export function LineCells({
  line,
  actions,
}: {
  readonly line: Line;
  readonly actions: LineActions;
}): ReactNode {
  return line.kind === 'run' ? (
    <RunCells line={line} actions={actions} />
  ) : (
    <FileCells line={line} actions={actions} />
  );
}
