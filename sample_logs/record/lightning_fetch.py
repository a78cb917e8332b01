"""Lightning's fetch of the next batch, without workers, then with workers that keep up.

The names in the traces are those that Lightning's own `PyTorchProfiler` writes:
`[pl][profile][_TrainingEpochLoop].train_dataloader_next` for the fetch, `[pl][module]…` for the
modules. Its steps begin where a `training_step` ends, so that each holds the backward pass of one
batch and the forward pass of the next.
"""

import logging
import warnings
from pathlib import Path

import torch
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.profilers import PyTorchProfiler
from torch import Tensor
from torch.nn import functional
from torch.profiler import schedule
from torch.utils.data import DataLoader
from typing_extensions import override

from cifar_models import CifarResNet
from dataloader import PackedImages, one_thread
from recording import TRACE_PATTERN, Plan, Target, seeded, target
from stepscope.recording import trace_handler

BATCH = 32
# Six steps pass until the workers' queue is full; from then on they make one batch per step.
PLAN = Plan(wait=6, active=8)
# After the last recorded step, so that the workers are not done before it.
MORE_BATCHES = 8
WORKER = "trainer"


class Classifier(LightningModule):
    """A small residual net that Lightning trains."""

    def __init__(self) -> None:
        super().__init__()
        self.net = CifarResNet()

    @override
    def training_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> Tensor:
        images, labels = batch
        return functional.cross_entropy(self.net(images), labels)

    @override
    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.05, momentum=0.9)


def profiler(run: Path) -> PyTorchProfiler:
    """Sets Lightning's profiler up; it adds CUDA by itself where there is a device."""
    return PyTorchProfiler(
        schedule=schedule(wait=PLAN.wait, warmup=PLAN.warmup, active=PLAN.active, repeat=1),
        on_trace_ready=trace_handler(run, worker_name=WORKER, use_gzip=True),
        record_shapes=True,
    )


def record(run: Path, workers: int, device: torch.device) -> None:
    """Trains for more batches than the plan has steps."""
    seeded()
    run.mkdir(parents=True, exist_ok=True)
    for earlier in run.glob(f"{WORKER}.{TRACE_PATTERN}"):
        earlier.unlink()
    batches = PLAN.steps + MORE_BATCHES
    loader = DataLoader(
        PackedImages(BATCH * batches),
        batch_size=BATCH,
        shuffle=True,
        num_workers=workers,
        pin_memory=device.type == "cuda",
        worker_init_fn=one_thread if workers else None,
    )
    trainer = Trainer(
        accelerator=device.type,
        devices=1,
        max_epochs=1,
        profiler=profiler(run),
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Classifier(), loader)
    print(f"{run.parent.name}/{run.name}: {WORKER} recorded")


def main(where: Target) -> None:
    """Records the fault and the fix."""
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.filterwarnings("ignore", module="lightning")  # there are few workers on purpose
    record(where.run("no_workers"), 0, where.device)
    record(where.run("workers_keep_up"), 2, where.device)


if __name__ == "__main__":
    main(target("lightning_fetch", __doc__))
