/** The step with the first fixes of the advice, and its limit then. */
import type { ReactNode } from 'react';
import type { JobReport, WorkerReport } from '../../api/types.gen';
import { unbroken } from '../../core/format';
import { Goto } from '../../widgets/goto';
import { Icon } from '../../widgets/icon';

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
    <Frame words={outlook.message}>
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
  return <Frame words={outlook.message} />;
}
