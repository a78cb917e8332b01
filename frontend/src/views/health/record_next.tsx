import type { ReactNode } from 'react';
import type { WorkerReport } from '../../api/types.gen';
import { Code } from '../../widgets/code';
import { Prose } from '../../widgets/prose';

/** Each line of code once, with all that it is good for. */
function byCode(wishes: WorkerReport['record_next']): [string, string[]][] {
  const found = new Map<string, string[]>();
  for (const { code, why } of wishes) found.set(code, [...(found.get(code) ?? []), why]);
  return [...found];
}

/** The one call that records what is missing, and why each of its lines is there. */
export function RecordNext({ worker }: { readonly worker: WorkerReport }): ReactNode {
  if (worker.profile_call === '') return null;
  return (
    <section className="card record-next" aria-labelledby="record-next">
      <div className="card-head">
        <h2 id="record-next">Record this next time</h2>
        <p>all that this recording has, and what it lacks</p>
      </div>
      <Code code={worker.profile_call} />
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
    </section>
  );
}
