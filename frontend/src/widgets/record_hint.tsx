import type { ReactNode } from 'react';
import { Code } from './code';

const RECORD = `from torch.profiler import profile, schedule, tensorboard_trace_handler

with profile(
    schedule=schedule(wait=1, warmup=1, active=3),
    on_trace_ready=tensorboard_trace_handler("log/my_run"),
    record_shapes=True,
    with_stack=True,
) as profiler:
    for batch in loader:
        train_step(batch)
        profiler.step()
`;

/** The code that records a trace. */
export function RecordHint(): ReactNode {
  return <Code code={RECORD} />;
}
