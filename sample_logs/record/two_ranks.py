"""Two ranks of one job on this machine: gloo between processes, or NCCL between two GPUs."""

# torch does not annotate spawn().
# mypy: allow-untyped-calls

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from torch import distributed
from torch.multiprocessing.spawn import spawn

from recording import LEFT_OUT, seeded

COUNT = 2
Loop = Callable[[int, torch.device], None]
"""Work of a rank, given its number and its device."""


def on_two_ranks(loop: Loop, device: torch.device) -> None:
    """Runs `loop`, which must be picklable, on both ranks, which connect by a file."""
    with tempfile.TemporaryDirectory() as folder:
        spawn(_rank, args=(loop, device.type, Path(folder) / "meeting"), nprocs=COUNT)


def insist_on_two(device: torch.device) -> None:
    """Ends the program if the machine has fewer GPUs than ranks."""
    if device.type == "cuda" and torch.cuda.device_count() < COUNT:
        sys.stderr.write(f"{Path(sys.argv[0]).name}: needs {COUNT} CUDA devices; skipped\n")
        sys.exit(LEFT_OUT)


def _rank(rank: int, loop: Loop, device_type: str, meeting: Path) -> None:
    seeded()
    on_cuda = device_type == "cuda"
    distributed.init_process_group(
        "nccl" if on_cuda else "gloo",
        init_method=f"file://{meeting}",
        rank=rank,
        world_size=COUNT,
    )
    if on_cuda:
        torch.cuda.set_device(rank)
    loop(rank, torch.device(f"cuda:{rank}" if on_cuda else "cpu"))
    distributed.destroy_process_group()
