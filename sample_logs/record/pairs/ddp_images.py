"""DistributedDataParallel trains a ResNet with BatchNorm on two ranks."""

# torch does not annotate Tensor.backward().
# mypy: allow-untyped-calls

from collections.abc import Set

import torch
from torch import distributed, nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

from cifar_models import CLASSES, IMAGE_SHAPE, CifarResNet
from pairs.job import Fault, Steps

FAULTS = {
    "searched": Fault("ddp-find-unused-parameters"),
    "small_buckets": Fault("small-collectives"),
    "buffers": Fault("ddp-buffer-broadcast"),
    "slow_rank": Fault("straggler-rank", "rank-compute-imbalance"),
}
PAIRS = (
    ("searched",),
    ("small_buckets",),
    ("buffers",),
    ("slow_rank",),
    ("searched", "small_buckets", "buffers"),
    ("small_buckets", "slow_rank"),
)
RANKS = 2
SEED = 20_279
BATCH = 8
UNEQUAL = (5, 11)
DEPTH = 20
WIDTH = 8
SMALL_BUCKET_MB = 0.002


def train(faults: Set[str], steps: Steps) -> None:
    """Train one rank; `faults` are the names of the faults that are switched on."""
    rank = distributed.get_rank()
    torch.manual_seed(SEED)
    model: nn.Module = DistributedDataParallel(
        CifarResNet(DEPTH, WIDTH),
        broadcast_buffers="buffers" in faults,
        find_unused_parameters="searched" in faults,
        bucket_cap_mb=SMALL_BUCKET_MB if "small_buckets" in faults else 25,
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, fused=True)
    torch.manual_seed(SEED + rank)
    batch = UNEQUAL[rank] if "slow_rank" in faults else BATCH
    images = torch.rand(16, batch, *IMAGE_SHAPE)
    labels = torch.randint(CLASSES, (16, batch))
    number = 0
    while steps.remain:
        row = number % len(images)
        optimizer.zero_grad()
        functional.cross_entropy(model(images[row]), labels[row]).backward()
        optimizer.step()
        number += 1
        steps.step()
