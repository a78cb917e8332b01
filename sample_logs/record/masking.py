"""NumPy in the middle of `forward`, then the same work with tensors.

The module selects the cells of a volume above a threshold. With NumPy, `.item()` reads the
threshold, the volume is copied to the host and the indices are copied back. No torch operator shows
the time of NumPy in the label "masking"; only the stacks do. `numpy_without_stacks` is the same
fault with `with_stack=False`: the trace then lacks the source line as well.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.profiler import record_function
from typing_extensions import override

from recording import Plan, Target, recorded, seeded, target

FEATURES = 256
ROWS = 128
VOLUME = {"cpu": (128, 128, 128), "cuda": (512, 512, 512)}  # cells; on CUDA as many as in the story
SHARE_ABOVE = 0.01

Masking = Callable[[Tensor, Tensor], Tensor]


def numpy_mask(out: Tensor, volume: Tensor) -> Tensor:
    """Finds the cells on the host: two waits and two copies where the device is a GPU."""
    threshold = out.mean().item()
    cells = np.argwhere(volume.cpu().numpy() > threshold)
    return torch.from_numpy(cells).to(volume.device)


def tensor_mask(out: Tensor, volume: Tensor) -> Tensor:
    """Finds the cells where the volume is."""
    threshold = out.mean()
    return torch.nonzero(volume > threshold)


class MaskedLinear(nn.Module):
    """A linear layer, and the cells of a volume that lie above its mean output."""

    def __init__(self, masking: Masking) -> None:
        super().__init__()
        self.linear = nn.Linear(FEATURES, FEATURES)
        self.masking = masking

    @override
    def forward(self, rows: Tensor, volume: Tensor) -> tuple[Tensor, Tensor]:
        with record_function("linear pass"):
            out = self.linear(rows)
        with record_function("masking"):
            cells = self.masking(out, volume)
        return out, cells


def record(run: Path, masking: Masking, device: torch.device, *, stacks: bool = True) -> None:
    """Runs the module forward and backward with one way of masking."""
    seeded()
    plan = Plan(active=8, stacks=stacks)
    model = MaskedLinear(masking).to(device)
    rows = torch.rand(ROWS, FEATURES, device=device)
    volume = torch.rand(VOLUME[device.type], device=device, dtype=torch.float64) - (1 - SHARE_ABOVE)
    volume *= 100  # so that the exact mean of the output near 0 matters little
    with recorded(run, device, plan) as profiler:
        for _ in range(plan.steps):
            out, _cells = model(rows, volume)
            out.sum().backward()
            profiler.step()


def main(where: Target) -> None:
    """Records the fault, the fault without stacks, and the fix."""
    record(where.run("numpy"), numpy_mask, where.device)
    record(where.run("numpy_without_stacks"), numpy_mask, where.device, stacks=False)
    record(where.run("tensor"), tensor_mask, where.device)


if __name__ == "__main__":
    main(target("masking", __doc__))
