/** Buttons to the previous and the next rank of a run, at the same step. */
import type { ReactNode } from 'react';
import type { RunState, Worker } from '../../api/types.gen';
import { useNavigation } from '../../state/navigation';
import type { Selection } from '../../state/selection';
import { Button } from '../../widgets/button';
import { Icon } from '../../widgets/icon';

const nameOf = ({ rank, name }: Worker): string => (rank === null ? name : `rank ${rank}`);

/** The next (1) or previous (-1) worker of a run; null at the ends. */
export function neighbourOf(run: RunState, worker: Worker, by: -1 | 1): Worker | null {
  const at = run.workers.findIndex(({ name }) => name === worker.name);
  return run.workers[at + by] ?? null;
}

interface NeighbourProps {
  readonly selection: Selection;
  readonly by: -1 | 1;
  readonly isAtStep: boolean;
  readonly onShow: (to: Worker) => void;
}

function NeighbourButton({ selection, by, isAtStep, onShow }: NeighbourProps): ReactNode {
  const neighbour = neighbourOf(selection.run, selection.worker, by);
  const label = by === 1 ? 'Next rank' : 'Previous rank';
  const name = neighbour && `${label}: ${nameOf(neighbour)}`;
  return (
    <Button
      quiet
      square
      aria-label={label}
      title={name ? `${name}${isAtStep ? ', at the same step' : ''}` : undefined}
      disabled={neighbour === null}
      onClick={() => neighbour && onShow(neighbour)}
    >
      <span className={by === 1 ? 'turn-right' : 'turn-left'}>
        <Icon name="down" size={15} />
      </span>
    </Button>
  );
}

export function RankButtons({ selection }: { readonly selection: Selection }): ReactNode {
  const { location, go } = useNavigation();
  const { run, worker, span } = selection;
  if (run.workers.length < 2) return null;
  const show = (to: Worker): void => {
    const isRecorded = to.spans.some(({ label }) => label === span.label);
    // All ranks number their steps alike; times and events belong to one trace.
    go({
      run: run.id,
      worker: to.name,
      span: isRecorded ? span.label : null,
      step: location.step,
    });
  };
  const isAtStep = location.step !== null;
  return (
    <span className="inline muted">
      <NeighbourButton selection={selection} by={-1} isAtStep={isAtStep} onShow={show} />
      {nameOf(worker)}
      <NeighbourButton selection={selection} by={1} isAtStep={isAtStep} onShow={show} />
    </span>
  );
}
