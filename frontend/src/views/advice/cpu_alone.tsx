import type { ReactNode } from 'react';
import type { WorkerReport } from '../../api/types.gen';
import { shownParts } from '../../charts/stacked_bar';
import { categoryWords } from '../../core/categories';
import { colourOf } from '../../core/colour';
import { duration, plural, quantityExact, share } from '../../core/format';
import type { Patch } from '../../state/navigation';
import { Code } from '../../widgets/code';
import { Empty } from '../../widgets/empty';
import { Goto } from '../../widgets/goto';
import { Icon } from '../../widgets/icon';
import { byLack, type Sorted } from './outcomes';

const MOST_PARTS = 3;

/** Where a category's time can be looked into; the others show in the overview. */
const PLACES: Readonly<Record<string, Patch>> = {
  cpu: { view: 'operators' },
  dataloader: { view: 'operators', search: 'DataLoader' },
};

function LargestParts({ step }: Pick<WorkerReport, 'step'>): ReactNode {
  const parts = Object.entries(step.breakdown_ns).map(([id, valueNs]) => ({
    id,
    ...categoryWords(id),
    valueNs,
  }));
  return (
    <ol className="next-parts">
      {shownParts(parts)
        .slice(0, MOST_PARTS)
        .map(({ id, label, help, valueNs }) => (
          <li key={id} title={quantityExact(valueNs, 'ns')}>
            <span className="swatch" style={{ background: colourOf(id) }} />
            <Goto to={PLACES[id] ?? { view: 'overview' }}>{label}</Goto>
            <strong>
              {duration(valueNs)} <small>{share(valueNs / step.mean_ns)}</small>
            </strong>
            <span className="muted">{help}</span>
          </li>
        ))}
    </ol>
  );
}

interface Props {
  readonly outcomes: Sorted;
  readonly worker: WorkerReport;
}

/** Nothing was found and no device was recorded: what that is worth, and where to look instead. */
export function CpuAlone({ outcomes, worker }: Props): ReactNode {
  const { passed, cannotTell, notApplicable } = outcomes;
  const remedies = byLack(cannotTell).map((lack) => lack.remedy);
  const blind = cannotTell.length + notApplicable.length;
  const recordDevice = remedies.find((remedy) => remedy.includes('ProfilerActivity'));
  return (
    <Empty icon="info" title="This recording is of the CPU alone">
      <p>
        {plural(passed.length, 'check')} could be made and found nothing wrong.{' '}
        {plural(blind, 'other check')} had nothing to look at, most of them because no GPU or other
        device was recorded. So this is no clean bill.
      </p>
      <div className="next">
        <section>
          <h3>What to look at next</h3>
          <p className="muted">
            The largest parts of the {worker.step.count > 0 ? 'mean step' : 'recorded window'}:
          </p>
          <LargestParts step={worker.step} />
          <p className="row">
            <Goto to={{ view: 'operators' }} className="button">
              Top operators <Icon name="arrow" size={13} />
            </Goto>
            <Goto to={{ view: 'overview' }} className="button">
              Step by step <Icon name="arrow" size={13} />
            </Goto>
          </p>
        </section>
        {recordDevice && (
          <section>
            <h3>If the model runs on a GPU</h3>
            <p className="muted">Record it too, and its checks can be made:</p>
            <Code code={recordDevice} />
          </section>
        )}
      </div>
    </Empty>
  );
}
