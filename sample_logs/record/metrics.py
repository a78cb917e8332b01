"""Metrics read from the device in every step, then stored as tensors until the end.

Every `.item()` and `.cpu()` waits until the device has finished all queued work. On a CPU there is
no device to wait for, and the fix saves only the time of the operators and of Python. Rules about
synchronization must report nothing for these two runs, but must report the fault on CUDA.
"""

# torch annotates neither Tensor.backward() nor spawn().
# mypy: allow-untyped-calls

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional

from cifar_models import made_images, small_conv_net
from recording import Plan, Target, recorded, seeded, target

BATCH = 32
PLAN = Plan(active=15, stacks=True)

Keep = Callable[[Tensor, Tensor, Tensor], object]


def read_each_step(loss: Tensor, logits: Tensor, labels: Tensor) -> object:
    """Copies the loss, the hits and the logits to the host, the hits sample by sample."""
    hits = 0
    for row, label in zip(logits, labels, strict=True):
        if row.argmax().item() == label.item():
            hits += 1
    return loss.item(), hits, logits.detach().cpu()


def keep_tensors(loss: Tensor, logits: Tensor, labels: Tensor) -> object:
    """Returns the same as tensors on the device, the hits counted by one comparison."""
    hits = (logits.argmax(dim=1) == labels).sum()
    return loss.detach(), hits, logits.detach()


def record(run: Path, keep: Keep, device: torch.device) -> None:
    """Trains and stores the metrics of every step."""
    seeded()
    model = small_conv_net().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    images, labels = made_images(BATCH, device)
    history = []
    with recorded(run, device, PLAN) as profiler:
        for _ in range(PLAN.steps):
            logits = model(images)
            loss = functional.cross_entropy(logits, labels)
            optimizer.zero_grad()
            loss.backward()
            history.append(keep(loss, logits, labels))
            optimizer.step()
            profiler.step()


def main(where: Target) -> None:
    """Records the fault and the fix."""
    record(where.run("item_each_step"), read_each_step, where.device)
    record(where.run("kept_as_tensors"), keep_tensors, where.device)


if __name__ == "__main__":
    main(target("metrics", __doc__))
