"""Loops without a fault: the advice must report nothing.

`transformer_inference` runs under `torch.inference_mode()`, `conv_training` has workers that keep
up, `gradient_accumulation` steps its optimizer every four batches; on CUDA all use pinned memory,
asynchronous copies, bfloat16, and a fused optimizer.
"""

# torch does not annotate Tensor.backward().
# mypy: allow-untyped-calls

from contextlib import AbstractContextManager
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader

from cifar_models import CifarResNet
from cifar_resnet18 import CifarImages
from dataloader import one_thread
from language_model import BATCH, CONTEXT, VOCABULARY, LanguageModel
from recording import Plan, Target, recorded, seeded, target

# The wait is long enough for the workers to be ahead when the profiler begins.
PLAN = Plan(wait=8, warmup=2, active=6)
IMAGES = 64
IMAGES_ON_CUDA = 1024
ACCUMULATED = 4
"""Batches for one step of the optimizer, each of half as many images."""


def lower_precision(device: torch.device) -> AbstractContextManager[object]:
    """Lets CUDA compute in bfloat16; a CPU may have no units for it."""
    return torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda")


def transformer_inference(run: Path, device: torch.device) -> None:
    """Scores random tokens, without a backward pass."""
    seeded()
    model = LanguageModel().to(device).eval()
    batch = 64 * BATCH if device.type == "cuda" else BATCH
    with torch.inference_mode(), recorded(run, device, PLAN) as profiler:
        for _ in range(PLAN.steps):
            tokens = torch.randint(VOCABULARY, (batch, CONTEXT), device=device)
            with lower_precision(device):
                model(tokens)
            profiler.step()


def loader(device: torch.device, batch: int, count: int) -> DataLoader[tuple[Tensor, int]]:
    """Returns a loader with enough workers to keep up with the model."""
    is_cuda = device.type == "cuda"
    return DataLoader(
        CifarImages(batch * count),
        batch_size=batch,
        shuffle=True,
        num_workers=12 if is_cuda else 2,
        worker_init_fn=one_thread,
        pin_memory=is_cuda,
    )


def sgd(model: nn.Module, device: torch.device) -> torch.optim.Optimizer:
    """Returns the fastest form of the optimizer on the device."""
    return torch.optim.SGD(
        model.parameters(), lr=0.05, momentum=0.9, fused=True if device.type == "cuda" else None
    )


def train(run: Path, device: torch.device, accumulated: int) -> None:
    """Trains on images; the optimizer and the profiler step once per `accumulated` batches."""
    seeded()
    images_a_batch = IMAGES_ON_CUDA if device.type == "cuda" else IMAGES
    batch = images_a_batch // (2 if accumulated > 1 else 1)
    batches = iter(loader(device, batch, PLAN.steps * accumulated))
    model = CifarResNet().to(device)
    optimizer = sgd(model, device)
    with recorded(run, device, PLAN) as profiler:
        for _ in range(PLAN.steps):
            optimizer.zero_grad()
            for _ in range(accumulated):
                images, labels = (part.to(device, non_blocking=True) for part in next(batches))
                with lower_precision(device):
                    loss = functional.cross_entropy(model(images), labels)
                (loss / accumulated).backward()
            optimizer.step()
            profiler.step()


def main(where: Target) -> None:
    """Records all three runs."""
    transformer_inference(where.run("transformer_inference"), where.device)
    train(where.run("conv_training"), where.device, 1)
    train(where.run("gradient_accumulation"), where.device, ACCUMULATED)


if __name__ == "__main__":
    main(target("good_practice", __doc__))
