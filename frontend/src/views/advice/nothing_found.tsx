import type { ReactNode } from 'react';
import type { WorkerReport } from '../../api/types.gen';
import { count, duration, plural, share } from '../../core/format';
import { Empty } from '../../widgets/empty';
import { Goto } from '../../widgets/goto';
import { CpuAlone } from './cpu_alone';
import { emptiness, type Sorted } from './outcomes';

interface Props {
  readonly outcomes: Sorted;
  readonly worker: WorkerReport;
}

/** The figures that a clean bill rests on. */
function numbers({ step, devices }: WorkerReport): string {
  const what =
    step.count > 0
      ? `${plural(step.count, 'step')} of ${duration(step.mean_ns)}`
      : `a window of ${duration(step.mean_ns)}`;
  const busy = devices.map((device) => `${device.name} busy ${share(device.busy_share)}`);
  return [what, ...busy].join(', ');
}

function Healthy({ outcomes, worker }: Props): ReactNode {
  return (
    <Empty icon="passed" tone="good" title="Nothing to fix was found">
      <p>
        {plural(outcomes.passed.length, 'check')} passed on {numbers(worker)}. To go faster from
        here, make the work itself cheaper: see which <Goto to={{ view: 'kernels' }}>kernels</Goto>{' '}
        and <Goto to={{ view: 'operators' }}>operators</Goto> take the time.
      </p>
    </Empty>
  );
}

function CannotTell({ outcomes, worker }: Props): ReactNode {
  const blind = outcomes.cannotTell.length + outcomes.failed.length;
  const made = outcomes.passed.length;
  const isDamaged = worker.health.some(
    (item) => item.nature === 'damage' && item.effect !== 'none',
  );
  return (
    <Empty icon="info" title="Nothing was found, but this trace does not tell enough">
      <p>
        {plural(made, 'check')} passed on {numbers(worker)}; {count(blind)} of {count(made + blind)}{' '}
        could not be made
        {isDamaged && (
          <>
            , and the file is <Goto to={{ view: 'health' }}>damaged</Goto>
          </>
        )}
        . That is no clean bill. Below, under “Cannot tell”, each says why, and which line of code
        would record what it lacks.
      </p>
    </Empty>
  );
}

function NothingApplicable({ outcomes }: Props): ReactNode {
  return (
    <Empty icon="info" title="No check applies to this recording">
      <p>
        None of {plural(outcomes.notApplicable.length, 'check')} finds in this trace what it is
        about. Below, under “Not applicable”, each says why.
      </p>
    </Empty>
  );
}

/** Nothing was found: healthy, unknowable, or nothing to look at. These are not the same. */
export function NothingFound(props: Props): ReactNode {
  const kind = emptiness(props.outcomes, props.worker);
  if (kind === 'healthy') return <Healthy {...props} />;
  if (kind === 'cpu-alone') return <CpuAlone {...props} />;
  return kind === 'cannot-tell' ? <CannotTell {...props} /> : <NothingApplicable {...props} />;
}
