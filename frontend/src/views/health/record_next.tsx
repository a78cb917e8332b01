import type { ReactNode } from 'react';
import type { WorkerReport } from '../../api/types.gen';
import { Card } from '../../widgets/card';
import { Code } from '../../widgets/code';
import { Prose } from '../../widgets/prose';

/** Each line of code once, with its reasons. */
function byCode(wishes: WorkerReport['record_next']): [string, string[]][] {
  const parts = new Map<string, string[]>();
  for (const { code, why } of wishes) parts.set(code, [...(parts.get(code) ?? []), why]);
  return [...parts];
}

/** The profiler call that records what is missing, with reasons. */
export function RecordNext({ worker }: { readonly worker: WorkerReport }): ReactNode {
  if (worker.profile_call === '') return null;
  return (
    <Card
      className="record-next"
      label="Record next time"
      title="Record next time"
      note="everything that this trace has, and what it lacks"
    >
      <Code
        code={worker.profile_call}
        language={worker.profile_call.startsWith('stepscope record') ? 'shell' : 'python'}
      />
      <dl>
        {byCode(worker.record_next).map(([code, reasons]) => (
          <div key={code}>
            <dt>
              <code>{code}</code>
            </dt>
            {reasons.map((why) => (
              <dd key={why}>
                <Prose text={why} />
              </dd>
            ))}
          </div>
        ))}
      </dl>
    </Card>
  );
}
