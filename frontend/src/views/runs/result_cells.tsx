import type { ReactNode } from 'react';
import type { RunResult, RunSaving, RunState } from '../../api/types.gen';
import { Sparkline } from '../../charts/sparkline';
import {
  count,
  duration,
  durationRange,
  plural,
  quantityExact,
  share,
  shareRange,
  unbroken,
} from '../../core/format';
import type { Patch } from '../../state/navigation';
import { Goto } from '../../widgets/goto';
import { Icon } from '../../widgets/icon';
import { RunAction } from './file_action';
import { RunStateCell } from './state_cell';

/** An empty cell with the reason. */
export function Blank({ column, why }: { readonly column: string; readonly why: string }) {
  return (
    <td className={`run-blank run-${column}`} title={why}>
      <span className="visually-hidden">{why}</span>
    </td>
  );
}

const UNREAD: Readonly<Record<RunState['state'], string>> = {
  queued: 'Not read yet',
  reading: 'Being read',
  ready: 'Being computed',
  cancelled: 'Not read: reading was cancelled',
  unreadable: 'The file cannot be read',
};

const NO_STEPS = 'No complete step was recorded: call prof.step() at the end of each iteration';
const NO_DEVICE = 'The trace has no device activity: the run used the CPU, or it was not recorded';
const NO_BATCH =
  'Unknown: record it with stepscope’s trace handler, or the shapes of inputs with record_shapes=True';

function stepWords(result: RunResult, stepNs: number): string {
  const { step_durations_ns: durations, step_count, slowest, trace_count } = result;
  const parts = [
    step_count > 1 ? `Mean of ${plural(step_count, 'step')}` : 'One step',
    quantityExact(stepNs, 'ns'),
    step_count > 1 && durations.length > 0 ? `longest ${duration(Math.max(...durations))}` : '',
    trace_count > 1 ? `in ${slowest}, the slowest of ${plural(trace_count, 'trace')}` : '',
  ];
  return parts.filter(Boolean).join(', ');
}

function StepCell({ result }: { readonly result: RunResult }): ReactNode {
  const { step_ns, step_durations_ns: durations, step_count } = result;
  if (step_ns === null) return <Blank column="step" why={NO_STEPS} />;
  return (
    <td className="number run-step" title={stepWords(result, step_ns)}>
      <span className="run-step-parts">
        {durations.length > 1 && (
          <Sparkline
            values={durations}
            label={`Durations of ${plural(step_count, 'step')}, ${duration(Math.min(...durations))} to ${duration(Math.max(...durations))}`}
          />
        )}
        <span>{duration(step_ns)}</span>
      </span>
    </td>
  );
}

function BusyCell({ result: { busy_share, trace_count } }: { readonly result: RunResult }) {
  if (busy_share === null) {
    return (
      <td className="number run-busy" title={NO_DEVICE}>
        <span className="note">no device</span>
      </td>
    );
  }
  const title = trace_count > 1 ? `Mean of ${plural(trace_count, 'trace')}` : undefined;
  return (
    <td className="number run-busy" title={title}>
      {share(busy_share)}
    </td>
  );
}

const shareOf = ({ low_ns, high_ns, share: most }: RunSaving): string =>
  shareRange(high_ns > 0 ? (low_ns / high_ns) * most : 0, most);

const timeOf = ({ low_ns, high_ns }: RunSaving): string => durationRange(low_ns, high_ns);

/** The saving of one finding: `saves 24.0–93.0 % of the step`. */
function savingOf({ step_ns }: RunResult, saving: RunSaving): string {
  return unbroken(`saves ${shareOf(saving)} of the ${step_ns === null ? 'window' : 'step'}`);
}

/** The first finding's place in the advice; of several traces, in that on the whole run. */
export const findingLocation = (run: RunState, result: RunResult): Patch => ({
  view: 'advice',
  run: run.id,
  worker: null,
  span: null,
  open: result.finding?.rule ?? null,
  options: result.trace_count > 1 ? { about: 'job' } : {},
});

interface CellProps {
  /** On the reading of the files. */
  readonly action: ReactNode;
  /** The verdict of the advice. */
  readonly title?: string;
  readonly children: ReactNode;
}

/** The cell of the first finding, or of the state of files. */
export function FindingCell({ action, title, children }: CellProps): ReactNode {
  return (
    <td className="run-finding" title={title}>
      <div className="run-finding-parts flex">
        <div className="grow">{children}</div>
        {action}
      </div>
    </td>
  );
}

function Finding({ run, result }: { readonly run: RunState; readonly result: RunResult }) {
  const { finding, finding_count } = result;
  if (!finding) {
    return (
      <>
        <span className="inline muted">
          <Icon name="passed" size={15} tone="good" /> No findings
        </span>
        <span className="run-made ellipsis note">{unbroken(result.verdict)}</span>
      </>
    );
  }
  const { severity, title, saving } = finding;
  const notes = [
    saving ? savingOf(result, saving) : 'no saving estimated',
    finding_count > 1 ? plural(finding_count - 1, 'more finding') : '',
  ];
  return (
    <>
      <div className="run-finding-title flex">
        <span className={`flex severity-${severity}`} title={severity}>
          <Icon name={severity} size={16} />
          <span className="visually-hidden">{severity}: </span>
        </span>
        <Goto
          to={findingLocation(run, result)}
          className="run-link ellipsis"
          title={`${title}\n${result.verdict}`}
        >
          {title}
        </Goto>
      </div>
      <span className="run-made ellipsis note" title={saving ? timeOf(saving) : undefined}>
        {notes.filter(Boolean).join(', ')}
      </span>
    </>
  );
}

function SavingCell({ result }: { readonly result: RunResult }): ReactNode {
  const { saving, withheld } = result;
  if (!saving) {
    const why = withheld || 'The checks found no potential saving';
    return <Blank column="saving" why={why} />;
  }
  return (
    <td className="number run-saving">
      {unbroken(shareOf(saving))}
      <span className="run-made note">{unbroken(timeOf(saving))}</span>
    </td>
  );
}

/** The cells of a run's results; before they arrive, the state of its files and blanks. */
export function ResultCells({ run }: { readonly run: RunState }): ReactNode {
  const { result, state } = run;
  if (!result) {
    const why = UNREAD[state];
    return (
      <>
        {['step', 'busy', 'steps', 'batch'].map((column) => (
          <Blank key={column} column={column} why={why} />
        ))}
        <FindingCell action={<RunAction run={run} />}>
          <RunStateCell run={run} />
        </FindingCell>
        <Blank column="saving" why={why} />
      </>
    );
  }
  return (
    <>
      <StepCell result={result} />
      <BusyCell result={result} />
      <td className="number run-steps">{count(result.step_count)}</td>
      {result.batch_size === null ? (
        <Blank column="batch" why={NO_BATCH} />
      ) : (
        <td className="number run-batch">{count(result.batch_size)}</td>
      )}
      <FindingCell action={<RunAction run={run} />} title={result.verdict}>
        <Finding run={run} result={result} />
      </FindingCell>
      <SavingCell result={result} />
    </>
  );
}
