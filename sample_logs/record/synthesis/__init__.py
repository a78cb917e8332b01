"""Generate the trace of a training on a GPU from a schedule.

The schedule lists the actions of the *host*, in order, with their durations. The device is
simulated: every stream is a first-in-first-out queue, so idle gaps, waits and overlaps follow from
the schedule. The same schedule always gives the same trace.

    document = synthesise(schedule)         # a dict, as json.load would return it
    write(document, Path("log/run/worker0.1.pt.trace.json.gz"))

A schedule is plain data, so YAML can hold it: a list of actions, or a mapping with settings and
`actions`. The functions of `synthesis.build` make the same data in Python.

    schedule:
      machine: h100            # h100 (default) | a100 | v100-2021 (the old format) | mi250 | cpu
      record: [shapes, memory] # also: stacks; the data that the profiler records
      latency_us: 3            # end of a launch to the kernel's start on an idle stream (default)
      launch_us: 5             # host time of a launch (default)
      actions:
        - steps: 6             # ProfilerStep#1 ... #6; a later `steps` continues
          body:
            - {dataloader: 0, us: 20000}
            - {op: "aten::mm", us: 4, dims: [[64, 64], [64, 64]], body: [{kernel: gemm, us: 300}]}
            - {item: 4}

Other settings, with their defaults: `start_us` (0), `gap_us` between kernels of a stream (0),
`queue_depth` (1024 launches), `around_us` (0: host time spent in closing every operator, annotation
and frame, and again after it, so that events do not touch, as in real traces), `jitter` (0: none;
with 0.02 every duration varies by up to 2 %), `seed` (0), `first_step` (1), `profiler_sync` (true:
the profiler's cudaDeviceSynchronize is at the end), `reserved_bytes` (0), `metadata` (more
top-level keys), `scenario` and `about` (shown as the trace's origin).

An action is a mapping. Its first key is the kind, with the main value; further keys are options,
all with a default. Every `us` is *host* time of the action itself, except on a kernel,
copy or memset, where it is *device* time (and `launch_us` the host's).

Structure
    {steps: 6, body: [...]}                           the profiled steps; `gap_us` between them
    {repeat: 3, body: [...]}
    {thread: autograd, body: [...]}                   on another host thread; the first one waits
    {annotation: "Optimizer.step#SGD.step", us: 10, body: [...]}
    {python: "train.py(40): augment", us: 900, body: [...]}
                                                      a Python frame, or a module's forward:
                                                      "nn.Module: Linear_0"
    {host: 500}                                       500 us without an event
    {op: "aten::relu", us: 5, after_us: 1, dims: [[8, 64]], types: [float], concrete: [""],
     seq: 3, body: [...]}                             `us` before the body, `after_us` after it;
                                                      ops of one `seq`: a forward, its backward
    {dataloader: 4, us: 80, body: [...]}              4 workers; 0: in this process

The device
    {kernel: gemm, us: 300, grid: [512, 1, 1], block: [256, 1, 1], registers: 64, shared: 0,
     stream: 7, launch_us: 5, by: cuLaunchKernelEx}   `by` defaults to cudaLaunchKernel;
                                                      `by: none` leaves no launch record;
                                                      `blocks_per_sm`, `occupancy`: else computed;
                                                      `blocking`: the launch waits for the kernel
    {graph: [{kernel: a, us: 3}, {kernel: b, us: 4}]} one cudaGraphLaunch, many kernels
    {copy: HtoD, bytes: 38535168, memory: pageable, us: 4800, stream: 7, blocking: true}
                                                      HtoD, DtoH, DtoD; `memory` pinned by default;
                                                      `us` from the machine's bandwidth; a pageable
                                                      copy blocks the host, a pinned one does not
    {memset: 512, us: 1}

Waiting
    {sync: stream, us: 2, stream: 7}                  cudaStreamSynchronize
    {sync: device} / {sync: event, event: loss}       cudaDeviceSynchronize / cudaEventSynchronize
    {event: loss, stream: 7}                          cudaEventRecord
    {wait: loss, stream: 20}                          cudaStreamWaitEvent: the stream waits
    {call: cudaFuncGetAttributes, us: 3}              any other runtime call

Memory
    {alloc: 1048576, as: x} / {free: x}               `[memory]` events; `on: cpu` for host memory
    {malloc: 2097152, us: 150} / {release: 2097152, us: 300}     cudaMalloc / cudaFree

Lines of Python that PyTorch expands
    {item: 4}                                         x.item() of 4 bytes: drains the stream
    {to_cpu: 1048576, dims: [512, 512]}               x.cpu(): a blocking copy to pageable memory
    {to_cuda: 1048576, dims: [512, 512], pinned: true, non_blocking: true, stream: 20}
                                                      x.to("cuda"); pageable and blocking by default
"""

from synthesis.document import synthesise
from synthesis.schedule import Schedule, ScheduleError, read
from synthesis.text import text, write

__all__ = ["Schedule", "ScheduleError", "read", "synthesise", "text", "write"]
