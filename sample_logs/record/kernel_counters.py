"""Hardware counters of each kernel, measured by CUPTI's range profiler: for a GPU.

Every kernel is a range of its own, and is run again until all counters are read; so the times of
this trace are not those of the training.
"""

# torch does not annotate Tensor.backward().
# mypy: allow-untyped-calls

import torch
from torch._C._profiler import _ExperimentalConfig
from torch.profiler import ProfilerActivity, profile

from feed_forward import feed_forward
from recording import Target, seeded, target

METRICS = (
    "kineto__tensor_core_insts",
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    "sm__warps_active.avg.pct_of_peak_sustained_active",
)
ROWS = 4_096
WIDTH = 1_024
DEPTH = 2


def main(where: Target) -> None:
    """Records one step."""
    seeded()
    model = feed_forward(DEPTH, WIDTH).to(where.device, torch.bfloat16)
    rows = torch.rand(ROWS, WIDTH, device=where.device, dtype=torch.bfloat16)
    model(rows).square().mean().backward()
    run = where.run("per_kernel")
    run.mkdir(parents=True, exist_ok=True)
    with profile(
        activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
        record_shapes=True,
        experimental_config=_ExperimentalConfig(
            profiler_metrics=list(METRICS), profiler_measure_per_kernel=True
        ),
    ) as profiler:
        model(rows).square().mean().backward()
        torch.cuda.synchronize()
    profiler.export_chrome_trace(str(run / "trainer.1.pt.trace.json.gz"))


if __name__ == "__main__":
    main(target("kernel_counters", __doc__))
