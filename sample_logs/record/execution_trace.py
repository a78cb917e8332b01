"""A training step with an execution trace beside it: torch's record of tensors and their ids.

Both files have the same `rf_id` (execution trace) and `Record function id` (profiler) for a call.
"""

# torch does not annotate Tensor.backward().
# mypy: allow-untyped-calls

from pathlib import Path

import torch
from torch.nn import functional
from torch.profiler import ExecutionTraceObserver, ProfilerActivity, profile, schedule

from cifar_models import CifarResNet, made_images
from recording import Target, seeded, target

BATCH = {"cpu": 4, "cuda": 256}
STEPS = 3


def record(run: Path, device: torch.device) -> None:
    """Trains for some steps."""
    seeded()
    model = CifarResNet().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    images, labels = made_images(BATCH[device.type], device)
    activities = [ProfilerActivity.CPU]
    if device.type == "cuda":
        activities.append(ProfilerActivity.CUDA)
    run.mkdir(parents=True, exist_ok=True)
    observer = ExecutionTraceObserver().register_callback(str(run / "trainer.et.json"))
    with profile(
        activities=activities,
        schedule=schedule(wait=1, warmup=1, active=STEPS, repeat=1),
        on_trace_ready=lambda done: done.export_chrome_trace(
            str(run / "trainer.1.pt.trace.json.gz")
        ),
        execution_trace_observer=observer,
    ) as profiler:
        for _ in range(STEPS + 2):
            loss = functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            profiler.step()
    observer.unregister_callback()


def main(where: Target) -> None:
    """Records the pair of files; the profiler's trace has no shapes of its own."""
    record(where.run("without_shapes"), where.device)


if __name__ == "__main__":
    main(target("execution_trace", __doc__))
