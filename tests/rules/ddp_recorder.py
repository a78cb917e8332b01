"""One rank of DistributedDataParallel over gloo, which records itself in several settings.

python ddp_recorder.py RANK MEETING_FILE FOLDER: `FOLDER/<setting>.json` of rank 0.
"""

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel
from torch.profiler import ProfilerActivity, profile, schedule

WIDTH = 128
STEPS = 3
PASSES = 3
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "searching": {"find_unused_parameters": True},
    "views": {"gradient_as_bucket_view": True},
    "small_buckets": {"bucket_cap_mb": 0.05},
    "buffers": {},
    "no_buffers": {"broadcast_buffers": False},
    "accumulated": {},
    "accumulated_without_sync": {},
}


def main(rank: int, meeting: str, folder: Path) -> None:
    """Record each setting."""
    torch.set_num_threads(1)
    address = f"file://{meeting}"
    distributed.init_process_group("gloo", init_method=address, rank=rank, world_size=2)
    for name, arguments in SETTINGS.items():
        layers = [nn.Linear(WIDTH, WIDTH) for _ in range(8)]
        norms = [nn.BatchNorm1d(WIDTH)] if "buffers" in name else []
        model = DistributedDataParallel(nn.Sequential(*layers, *norms), **arguments)
        record(model, name, folder if rank == 0 else None)
    distributed.destroy_process_group()


def record(model: DistributedDataParallel, name: str, folder: Path | None) -> None:
    """Train some steps; the rank that has a folder writes what it recorded."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batch = torch.rand(32, WIDTH)
    with profile(
        activities=[ProfilerActivity.CPU],
        schedule=schedule(wait=1, warmup=1, active=STEPS),
        record_shapes=True,
    ) as profiler:
        for _ in range(2 + STEPS):
            optimizer.zero_grad()
            passes = PASSES if name.startswith("accumulated") else 1
            for number in range(passes):
                is_kept = name == "accumulated_without_sync" and number < passes - 1
                with model.no_sync() if is_kept else nullcontext():
                    model(batch).square().mean().backward()
            optimizer.step()
            profiler.step()
    if folder is not None:
        profiler.export_chrome_trace(str(folder / f"{name}.json"))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
