/** The step with the first fixes of the advice, and its limit then. */
import type { ReactNode } from 'react';
import type { JobReport, Outlook, WorkerReport } from '../../api/types.gen';
import { duration, durationRange, share, unbroken } from '../../core/format';
import { Goto } from '../../widgets/goto';
import { Icon } from '../../widgets/icon';

const LIMITS: Readonly<Record<Outlook['limit'], string>> = {
  host: 'the host is',
  device: 'the device is',
  'data loading': 'data loading is',
  collectives: 'collectives are',
  'launches and waits': 'launches and waits are',
};

/** Names as a sentence lists them: `a, b and c`. */
const joined = (names: readonly string[]): string =>
  [names.slice(0, -1).join(', '), ...names.slice(-1)].filter(Boolean).join(' and ');

/** The sentences of a trace, as the terminal prints them. */
export function outlookWords({ step, devices }: WorkerReport, outlook: Outlook): string {
  const { rules, low_ns, high_ns, now_ns, limit, limit_share, next_rule } = outlook;
  const isUnrecorded = outlook.world === 'unrecorded';
  const subject = `${isUnrecorded ? 'unrecorded ' : ''}${step.count > 0 ? 'step' : 'trace'}`;
  const now = `${duration(now_ns)}${isUnrecorded || step.count === 0 ? '' : ' as recorded'}`;
  const isNews = limit !== 'host' || devices.length > 0;
  const end = isNews
    ? `; then ${LIMITS[limit]} the limit (${share(limit_share)} of the path to its end).`
    : '.';
  const next = next_rule
    ? ` Next is ${next_rule}: up to ${duration(outlook.next_saving_ns)} more.`
    : '';
  const times = durationRange(low_ns, high_ns);
  return `Fix ${joined(rules)}, and the ${subject} takes ${times} (now ${now})${end}${next}`;
}

interface FrameProps {
  readonly words: string;
  readonly children?: ReactNode;
}

function Frame({ words, children }: FrameProps): ReactNode {
  return (
    <section className="card outlook" aria-label="Outlook">
      <p className="strong">{unbroken(words)}</p>
      {children}
    </section>
  );
}

interface Props {
  readonly worker: WorkerReport;
  /** Rules whose findings the user dismissed. */
  readonly dismissed: readonly string[];
}

/** Below the findings of a trace. */
export function TraceOutlook({ worker, dismissed }: Props): ReactNode {
  const { outlook, outlook_withheld: withheld, name, span } = worker;
  if (!outlook) {
    return withheld ? (
      <Frame words={`The step with these fixes is not predicted: ${withheld}.`} />
    ) : null;
  }
  if (outlook.rules.some((rule) => dismissed.includes(rule))) return null;
  return (
    <Frame words={outlookWords(worker, outlook)}>
      <Goto
        to={{
          view: 'whatif',
          worker: name,
          span,
          options: { fix: outlook.rules.join(',') },
        }}
        className="button"
        title="Simulate the recorded step with these fixes"
      >
        <Icon name="sliders" size={14} /> What if these were fixed
      </Goto>
    </Frame>
  );
}

interface JobProps {
  readonly job: JobReport | null;
  readonly dismissed: readonly string[];
}

/** Below the findings of a job. */
export function JobOutlook({ job, dismissed }: JobProps): ReactNode {
  const outlook = job?.outlook;
  if (!outlook || outlook.rules.some((rule) => dismissed.includes(rule))) return null;
  const times = durationRange(outlook.low_ns, outlook.high_ns);
  return (
    <Frame
      words={`Fix ${joined(outlook.rules)}, and the job's step takes ${times} (now ${duration(job.step_ns)}).`}
    />
  );
}
