/** What the page shows without findings: healthy, CPU only, inconclusive, or not applicable. */
import type { ReactNode } from 'react';
import type { WorkerReport } from '../../api/types.gen';
import { shownParts } from '../../charts/stacked_bar';
import { colourOf } from '../../core/colour';
import { duration, quantityExact, share, unbroken } from '../../core/format';
import type { Patch } from '../../state/navigation';
import { Code } from '../../widgets/code';
import { Empty } from '../../widgets/empty';
import { Goto } from '../../widgets/goto';
import { Icon } from '../../widgets/icon';
import { byMissingData, type EmptyReason, emptyReason, type GroupedOutcomes } from './outcomes';
import { partsOf } from './verdict';

interface Props {
  readonly outcomes: GroupedOutcomes;
  readonly worker: WorkerReport;
}

function Healthy({ worker }: Props): ReactNode {
  return (
    <Empty icon="passed" tone="good" title="No problems found">
      <p>
        {unbroken(worker.standing?.message ?? '')} To go faster, reduce the work itself: see which{' '}
        {worker.devices.length > 0 && (
          <>
            <Goto to={{ view: 'kernels' }}>kernels</Goto> and{' '}
          </>
        )}
        <Goto to={{ view: 'operators' }}>operators</Goto> take the time.
      </p>
    </Empty>
  );
}

function InconclusiveTrace({ worker }: Props): ReactNode {
  const isDamaged = worker.health.some(
    (item) => item.nature === 'damage' && item.effect !== 'none',
  );
  return (
    <Empty icon="info" title="No findings, but checks are inconclusive">
      <p>
        {unbroken(worker.standing?.message ?? '')}{' '}
        {isDamaged && (
          <>
            The file is <Goto to={{ view: 'health' }}>damaged</Goto>.{' '}
          </>
        )}
        “Inconclusive” below lists the reason for each, and the line of code that records what is
        missing.
      </p>
    </Empty>
  );
}

function NothingApplicable({ worker }: Props): ReactNode {
  return (
    <Empty icon="info" title="No check applies to this trace">
      <p>{worker.standing?.message} “Not applicable” below lists the reasons.</p>
    </Empty>
  );
}

const MOST_PARTS = 3;

/** Views of the time of a category; the overview shows the others. */
const VIEWS: Readonly<Record<string, Patch>> = {
  cpu: { view: 'operators' },
  dataloader: { view: 'operators', search: 'DataLoader' },
};

function LargestParts({ worker }: { readonly worker: WorkerReport }): ReactNode {
  return (
    <ol className="next-parts">
      {shownParts(partsOf(worker))
        .slice(0, MOST_PARTS)
        .map(({ id, label, help, valueNs }) => (
          <li key={id} title={quantityExact(valueNs, 'ns')}>
            <span className="swatch" style={{ background: colourOf(id) }} />
            <Goto to={VIEWS[id] ?? { view: 'overview' }}>{label}</Goto>
            <strong>
              {duration(valueNs)} <small>{share(valueNs / worker.step.mean_ns)}</small>
            </strong>
            <span className="muted">{help}</span>
          </li>
        ))}
    </ol>
  );
}

/** The trace has no device: its largest parts, and how to record a device. */
function CpuOnly({ outcomes, worker }: Props): ReactNode {
  const recordDevice = byMissingData(outcomes.inconclusive)
    .map(({ remedy }) => remedy)
    .find((remedy) => remedy.includes('ProfilerActivity'));
  return (
    <Empty icon="info" title="This trace contains CPU events only">
      <p>
        {unbroken(worker.standing?.message ?? '')} Checks of devices did not run, since no GPU or
        other device was recorded.
      </p>
      <div className="next">
        <section>
          <h3>Where to look next</h3>
          <p className="muted">
            The largest parts of the {worker.step.count > 0 ? 'mean step' : 'recorded window'}:
          </p>
          <LargestParts worker={worker} />
          <p className="row">
            <Goto to={{ view: 'operators' }} className="button">
              Top operators <Icon name="arrow" size={13} />
            </Goto>
            <Goto to={{ view: 'overview' }} className="button">
              Steps <Icon name="arrow" size={13} />
            </Goto>
          </p>
        </section>
        {recordDevice && (
          <section>
            <h3>If the model runs on a GPU</h3>
            <p className="muted">Record the device as well, so that its checks can run:</p>
            <Code code={recordDevice} />
          </section>
        )}
      </div>
    </Empty>
  );
}

const PAGES: Readonly<Record<EmptyReason, (props: Props) => ReactNode>> = {
  healthy: Healthy,
  'cpu-only': CpuOnly,
  inconclusive: InconclusiveTrace,
  'nothing-applicable': NothingApplicable,
};

export function NoFindings(props: Props): ReactNode {
  const Page = PAGES[emptyReason(props.worker)];
  return <Page {...props} />;
}
