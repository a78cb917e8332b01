import type { ReactNode } from 'react';
import { shellWord } from '../core/shell_word';
import { Code } from './code';

/** An address, several directories, or a file: no folder to record into. */
const NO_FOLDER = /:\/\/|, |\.json(\.gz)?$|^$/;

/** A folder of a run below the log directory; relative where that is no folder here. */
const runFolder = (logFolder: string): string =>
  `${NO_FOLDER.test(logFolder) ? 'log' : logFolder.replace(/\/+$/, '')}/my_run`;

const recordInto = (folder: string): string => `import stepscope
from torch.profiler import profile, schedule

with profile(
    schedule=schedule(wait=10, warmup=1, active=8),
    on_trace_ready=stepscope.trace_handler(${JSON.stringify(folder)}),
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

/** The command and the code that record a trace. */
export function RecordHint({ logFolder = '' }: Props): ReactNode {
  const folder = runFolder(logFolder);
  return (
    <>
      <Code
        code={`stepscope record --log-dir ${shellWord(folder)} -- python train.py`}
        language="shell"
      />
      <p>Or in the script:</p>
      <Code code={recordInto(folder)} />
    </>
  );
}
