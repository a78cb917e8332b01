/** From rank to rank of a run: the same step in the next recording. */
import type { ReactNode } from 'react';
import type { RunState, Worker } from '../../api/types.gen';
import { useNavigation } from '../../state/navigation';
import type { Selection } from '../../state/selection';
import { Icon } from '../../widgets/icon';

const nameOf = ({ rank, name }: Worker): string => (rank === null ? name : `rank ${rank}`);

/** The worker beside another, as the run lists them; null behind the last. */
export function workerBeside(run: RunState, worker: Worker, by: -1 | 1): Worker | null {
  const at = run.workers.findIndex(({ name }) => name === worker.name);
  return run.workers[at + by] ?? null;
}

interface BesideProps {
  readonly run: RunState;
  readonly worker: Worker;
  readonly by: -1 | 1;
  readonly isAtStep: boolean;
  readonly onShow: (to: Worker) => void;
}

function Beside({ run, worker, by, isAtStep, onShow }: BesideProps): ReactNode {
  const beside = workerBeside(run, worker, by);
  const words = by === 1 ? 'Next rank' : 'Previous rank';
  return (
    <button
      type="button"
      className="button quiet square"
      aria-label={words}
      title={
        beside ? `${words}: ${nameOf(beside)}${isAtStep ? ', at the same step' : ''}` : undefined
      }
      disabled={beside === null}
      onClick={() => beside && onShow(beside)}
    >
      <span className={by === 1 ? 'turn-right' : 'turn-left'}>
        <Icon name="down" size={15} />
      </span>
    </button>
  );
}

/** Nothing where the run has one worker only. */
export function RankButtons({ selection }: { readonly selection: Selection }): ReactNode {
  const { location, go } = useNavigation();
  const { run, worker, span } = selection;
  if (run.workers.length < 2) return null;
  const show = (to: Worker): void => {
    const isRecorded = to.spans.some(({ label }) => label === span.label);
    // Steps have the same numbers in all ranks; times and events are a recording's own.
    go({
      run: run.id,
      worker: to.name,
      span: isRecorded ? span.label : null,
      step: location.step,
    });
  };
  const isAtStep = location.step !== null;
  return (
    <span className="rank-buttons">
      <Beside run={run} worker={worker} by={-1} isAtStep={isAtStep} onShow={show} />
      {nameOf(worker)}
      <Beside run={run} worker={worker} by={1} isAtStep={isAtStep} onShow={show} />
    </span>
  );
}
