"""Two ranks accumulate the gradients of four small batches of images for each update."""

# torch does not annotate Tensor.backward().
# mypy: allow-untyped-calls

from collections.abc import Set
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, distributed, nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

from pairs.job import Fault, Steps

FAULTS = {
    "reduced_each_time": Fault("ddp-missing-no-sync"),
    "slow_rank": Fault("straggler-rank", "rank-compute-imbalance"),
    "one_by_one": Fault("cpu-optimizer-not-fused"),
}
PAIRS = (
    ("reduced_each_time",),
    ("slow_rank",),
    ("one_by_one",),
    ("reduced_each_time", "one_by_one"),
    ("reduced_each_time", "slow_rank"),
)
RANKS = 2
SEED = 20_280
ACCUMULATED = 4
BATCH = 8
SIDE = 32
CLASSES = 20
WIDTH = 768
REPAIRS = 40


def network() -> nn.Sequential:
    """Returns a few convolutions and wide linear layers, whose gradients are large."""
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(16, 32, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(32 * 4 * 4, WIDTH),
        nn.ReLU(),
        nn.Linear(WIDTH, WIDTH),
        nn.ReLU(),
        nn.Linear(WIDTH, CLASSES),
    )


def denoised(images: Tensor, passes: int) -> Tensor:
    """Returns images smoothed some times, as the files of one rank need it."""
    for _ in range(passes):
        images = 0.5 * images + 0.5 * functional.avg_pool2d(images, 3, stride=1, padding=1)
    return images


def train(faults: Set[str], steps: Steps) -> None:
    """Train one rank; `faults` are the names of the faults that are switched on."""
    rank = distributed.get_rank()
    torch.manual_seed(SEED)
    model = DistributedDataParallel(network())
    fused = "one_by_one" not in faults
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=False, fused=fused)
    torch.manual_seed(SEED + rank)
    images = torch.rand(16, BATCH, 3, SIDE, SIDE)
    labels = torch.randint(CLASSES, (16, BATCH))
    # All noisy files are in the second rank's shard, or they are spread over both.
    passes = (0, REPAIRS)[rank] if "slow_rank" in faults else REPAIRS // 2
    number = 0
    while steps.remain:
        optimizer.zero_grad()
        for part in range(ACCUMULATED):
            is_last = part == ACCUMULATED - 1 or "reduced_each_time" in faults
            sync: AbstractContextManager[object] = nullcontext() if is_last else model.no_sync()
            row = number % len(images)
            with sync:
                logits = model(denoised(images[row], passes))
                (functional.cross_entropy(logits, labels[row]) / ACCUMULATED).backward()
            number += 1
        optimizer.step()
        steps.step()
