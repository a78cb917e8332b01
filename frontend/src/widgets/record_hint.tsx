import type { ReactNode } from 'react';
import { Code } from './code';

/** A folder of a run below the log directory; a folder that nobody knows is relative. */
const runFolder = (logFolder: string): string =>
  `${logFolder === '' ? 'log' : logFolder.replace(/\/+$/, '')}/my_run`;

const recordInto = (
  folder: string,
): string => `from torch.profiler import profile, schedule, tensorboard_trace_handler

with profile(
    schedule=schedule(wait=1, warmup=1, active=3),
    on_trace_ready=tensorboard_trace_handler(${JSON.stringify(folder)}),
    record_shapes=True,
    with_stack=True,
) as profiler:
    for batch in loader:
        train_step(batch)
        profiler.step()
`;

interface Props {
  /** The log directory, where the page looks for traces. */
  readonly logFolder?: string;
}

/** The code that records a trace. */
export function RecordHint({ logFolder = '' }: Props): ReactNode {
  return <Code code={recordInto(runFolder(logFolder))} />;
}
