import type { ReactNode } from 'react';
import type { RunState, Span } from '../../api/types.gen';
import { bytes, count, plural, recordedTime } from '../../core/format';
import { isPending, spansOf } from '../../core/progress';
import type { Patch } from '../../state/navigation';
import { SyntheticBadge } from '../../widgets/badge';
import { Goto } from '../../widgets/goto';
import { Icon } from '../../widgets/icon';
import { RUN_COLUMNS } from './columns';
import { FileAction } from './file_action';
import {
  damageOf,
  type FileLine,
  type FolderLine,
  type Line,
  latestOf,
  type RunLine,
} from './lines';
import { Blank, FindingCell, ResultCells } from './result_cells';
import { FileState } from './state_cell';

export interface LineActions {
  readonly toggleOpen: (run: RunState) => void;
  /** Marks a run (by id) or a file (by trace) for a comparison. */
  readonly toggleMarked: (key: string) => void;
  readonly isMarked: (key: string) => boolean;
  readonly select: (line: FileLine) => void;
}

interface HealthProps {
  readonly spans: readonly Span[];
  readonly to: Patch;
}

function HealthCell({ spans, to }: HealthProps): ReactNode {
  const damage = damageOf(spans);
  if (!damage) {
    if (!spans.some(({ state }) => state === 'ready'))
      return <Blank column="health" why="Known when a file is read" />;
    return (
      <td className="run-health" title="No damage">
        <Icon name="passed" size={15} tone="good" />
        <span className="visually-hidden">no damage</span>
      </td>
    );
  }
  return (
    <td className="run-health">
      <Goto
        to={{ ...to, view: 'health' }}
        className={`inline severity-${damage}`}
        title={`Damaged (${damage}): show its health`}
      >
        <Icon name="health" size={16} />
        <span className="visually-hidden">damaged, {damage}</span>
        <span className="run-damage" aria-hidden="true">
          {damage}
        </span>
      </Goto>
    </td>
  );
}

function RecordedCell({ spans }: { readonly spans: readonly Span[] }): ReactNode {
  const [day, time] = recordedTime(latestOf(spans)).split(' ');
  if (!day) return <Blank column="recorded" why="The names of its files have no time" />;
  return (
    <td className="run-recorded">
      {day}
      <span className="run-made note">{time}</span>
    </td>
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

/** Size of a run of several files, and those that have no result yet. */
function sizeOf(run: RunState): string {
  const spans = spansOf(run);
  const workers = plural(run.workers.length, 'worker');
  const numberOf = (is: (span: Span) => boolean, words: string): string => {
    const size = spans.filter(is).length;
    return size > 0 ? `${count(size)} ${words}` : '';
  };
  const parts = [
    workers,
    run.workers.length === spans.length ? '' : plural(spans.length, 'file'),
    numberOf(isPending, 'not read yet'),
    numberOf(({ state }) => state === 'unreadable', 'unreadable'),
    numberOf(({ state }) => state === 'cancelled', 'cancelled'),
  ];
  return parts.filter((part) => part !== '').join(', ');
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

interface FileProps {
  readonly line: FileLine;
  readonly actions: LineActions;
}

function FileButton({ line, actions }: FileProps): ReactNode {
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
  const { run, label, files } = line;
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
            <Goto
              to={{ ...to, view: 'advice' }}
              className="run-link ellipsis"
              title={`${run.name}: show its advice`}
            >
              {label}
            </Goto>
            <span className="run-about flex">
              {run.synthetic && <SyntheticBadge />}
              {spans.length === 1 && only ? (
                <FileButton line={only} actions={actions} />
              ) : (
                <span className="run-made ellipsis note" title={sizeOf(run)}>
                  {sizeOf(run)}
                </span>
              )}
            </span>
          </div>
        </div>
      </th>
      <ResultCells run={run} />
      <HealthCell spans={spans} to={to} />
      <RecordedCell spans={spans} />
    </>
  );
}

const OF_RUN = 'Results are of the whole run';

function FileCells({ line, actions }: FileProps): ReactNode {
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
      {['step', 'busy', 'steps', 'batch'].map((column) => (
        <Blank key={column} column={column} why={OF_RUN} />
      ))}
      <FindingCell action={<FileAction span={span} />}>
        <FileState span={span} />
        {span.events !== null && (
          <span className="note">
            {' '}
            {bytes(span.file_bytes)}, {plural(span.events, 'event')}
          </span>
        )}
      </FindingCell>
      <Blank column="saving" why={OF_RUN} />
      <HealthCell spans={[span]} to={to} />
      <RecordedCell spans={[span]} />
    </>
  );
}

function FolderCells({ line: { folder, runs } }: { readonly line: FolderLine }): ReactNode {
  const [, ...others] = RUN_COLUMNS;
  return (
    <>
      <th scope="rowgroup" colSpan={2} className="run-folder">
        <span className="strong">{folder === '' ? 'In no folder' : folder}</span>{' '}
        <span className="note">{plural(runs.length, 'run')}</span>
      </th>
      {others.map(({ key }) => (
        <td key={key} className={`run-folder run-${key}`} />
      ))}
    </>
  );
}

interface Props {
  readonly line: Line;
  readonly actions: LineActions;
}

/** One line of the table: a folder, a run, or one of its files. */
export function LineCells({ line, actions }: Props): ReactNode {
  if (line.kind === 'folder') return <FolderCells line={line} />;
  return line.kind === 'run' ? (
    <RunCells line={line} actions={actions} />
  ) : (
    <FileCells line={line} actions={actions} />
  );
}
