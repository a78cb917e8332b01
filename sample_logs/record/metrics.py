"""Metrics read from the device in every step, then kept as tensors until the end.

Every `.item()` and `.cpu()` waits for the device to finish all that was asked of it. On a CPU
there is nothing to wait for, and the saving is only that of the operators and the Python around
them: advice about synchronisation must stay away from these two runs, and speak on CUDA.
"""

# torch annotates neither Tensor.backward() nor spawn().
# mypy: allow-untyped-calls

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from cifar_resnet import CLASSES, CifarResNet, made_images
from recording import Plan, Target, recorded, seeded, target

BATCH = 8
PLAN = Plan(active=6, stacks=True)

Keep = Callable[[nn.Module, Tensor, Tensor, Tensor], object]


def read_each_step(model: nn.Module, loss: Tensor, logits: Tensor, labels: Tensor) -> object:
    """Brings loss, accuracy by class and every gradient's norm to Python numbers, one by one."""
    guesses = logits.argmax(dim=1)
    right = [((guesses == label) & (labels == label)).sum().item() for label in range(CLASSES)]
    squares = [p.grad.norm().item() ** 2 for p in model.parameters() if p.grad is not None]
    return loss.item(), right, sum(squares) ** 0.5, guesses.cpu()


def keep_tensors(model: nn.Module, loss: Tensor, logits: Tensor, labels: Tensor) -> object:
    """Keeps the same metrics on the device, in a few operators."""
    guesses = logits.argmax(dim=1)
    right = torch.zeros(CLASSES, device=labels.device)
    right.scatter_add_(0, labels, (guesses == labels).to(right.dtype))
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    return loss.detach(), right, nn.utils.get_total_norm(gradients), guesses


def record(run: Path, keep: Keep, device: torch.device) -> None:
    """Trains and keeps metrics of every step."""
    seeded()
    model = CifarResNet(width=8).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    images, labels = made_images(BATCH, device)
    history = []
    with recorded(run, device, PLAN) as profiler:
        for _ in range(PLAN.steps):
            logits = model(images)
            loss = functional.cross_entropy(logits, labels)
            optimizer.zero_grad()
            loss.backward()
            history.append(keep(model, loss, logits, labels))
            optimizer.step()
            profiler.step()


def main(where: Target) -> None:
    """Records the fault and the fix."""
    record(where.run("item_each_step"), read_each_step, where.device)
    record(where.run("kept_as_tensors"), keep_tensors, where.device)


if __name__ == "__main__":
    main(target("metrics", __doc__))
