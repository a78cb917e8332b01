import type { ReactNode } from 'react';
import type { Distributed } from '../../api/types.gen';
import { count, plural } from '../../core/format';
import { Code } from '../../widgets/code';
import { Empty } from '../../widgets/empty';

const RECORDING = `torch.profiler.profile(
    schedule=torch.profiler.schedule(wait=5, warmup=2, active=6),
    on_trace_ready=torch.profiler.tensorboard_trace_handler(
        "log/my_run", worker_name=f"rank{torch.distributed.get_rank()}"),
)`;

function reason({ world_size, ranks }: Distributed): string {
  const worker = ranks[0]?.worker ?? 'one worker';
  if (world_size !== null && world_size > 1) {
    return `This run holds a recording of ${worker} alone, of a job of ${count(world_size)} ranks. Who waits for whom can only be seen beside the others.`;
  }
  return `This run holds a recording of one process, ${worker}. Who waits for whom can only be seen where several ranks were recorded.`;
}

/** In place of what one rank cannot tell: what to record, and which files belong together. */
export function Alone({ summary }: { readonly summary: Distributed }): ReactNode {
  const { world_size, collective_count } = summary;
  return (
    <Empty icon="distributed" title="Only one rank was recorded">
      <p>{reason(summary)}</p>
      <p>
        {world_size === 1
          ? 'Of a job of several ranks, record every one, over the same steps and into one folder:'
          : 'Record every rank, over the same steps and into one folder:'}
      </p>
      <Code code={RECORDING} />
      <p>
        Files of one folder are one run. If those of the other ranks lie in folders of their own,
        move them together: a rank is known by its file’s header, else by its name, such as{' '}
        <code className="inline-code">rank3.pt.trace.json.gz</code>.
      </p>
      {collective_count > 0 && (
        <p>
          Below is what this rank says of {plural(collective_count, 'collective')}: its own time, of
          which nothing tells transfer from waiting.
        </p>
      )}
    </Empty>
  );
}
