"""Two ranks of DistributedDataParallel, one of them slow, then balanced.

Of a global batch of 32 sequences the second rank gets 28, as when shards of unequal size are read
to their end in the same number of steps; the first waits for it in every all-reduce. Balanced,
each gets 16.
"""

# torch annotates neither Tensor.backward() nor spawn().
# mypy: allow-untyped-calls

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, distributed, nn
from torch.multiprocessing.spawn import spawn
from torch.nn.parallel import DistributedDataParallel
from typing_extensions import override

from recording import Plan, Target, recorded, seeded, target

ONE_SLOW = (4, 28)
BALANCED = (16, 16)
LENGTH = 64
WIDTH = 96
PLAN = Plan(active=6)


class SequenceClassifier(nn.Module):
    """Mixes every token of a sequence with the others, then averages."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *(nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, batch_first=True) for _ in range(2))
        )
        self.classifier = nn.Linear(WIDTH, 10)

    @override
    def forward(self, sequences: Tensor) -> Tensor:
        scores: Tensor = self.classifier(self.layers(sequences).mean(dim=1))
        return scores


@dataclass(frozen=True)
class Job:
    """What every rank is told: where its trace goes, where it runs, and each rank's batch."""

    run: Path
    device_type: str
    batches: tuple[int, ...]
    meeting: Path


def train(rank: int, job: Job) -> None:
    """Is one rank, from its start to its end."""
    seeded()
    on_cuda = job.device_type == "cuda"
    distributed.init_process_group(
        "nccl" if on_cuda else "gloo",
        init_method=f"file://{job.meeting}",
        rank=rank,
        world_size=len(job.batches),
    )
    device = torch.device(f"cuda:{rank}" if on_cuda else "cpu")
    model = DistributedDataParallel(SequenceClassifier().to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    sequences = torch.rand(job.batches[rank], LENGTH, WIDTH, device=device)
    with recorded(job.run, device, PLAN, worker=f"rank{rank}") as profiler:
        for _ in range(PLAN.steps):
            optimizer.zero_grad()
            model(sequences).square().mean().backward()
            optimizer.step()
            profiler.step()
    distributed.destroy_process_group()


def record(run: Path, device: torch.device, batches: tuple[int, ...]) -> None:
    """Runs every rank on this machine; they meet over a file."""
    with tempfile.TemporaryDirectory() as folder:
        job = Job(run, device.type, batches, Path(folder) / "meeting")
        spawn(train, args=(job,), nprocs=len(batches))


def main(where: Target) -> None:
    """Records the fault and the fix."""
    if where.device.type == "cuda" and torch.cuda.device_count() < len(BALANCED):
        sys.exit(f"ranks.py: needs {len(BALANCED)} CUDA devices; use --device cpu")
    record(where.run("one_slow_rank"), where.device, ONE_SLOW)
    record(where.run("balanced"), where.device, BALANCED)


if __name__ == "__main__":
    main(target("ranks", __doc__))
