"""AdamW parameter by parameter, then all at once.

The network has many small parameters, and each takes a dozen operators in the loop that torch uses
on a CPU unless it is told otherwise. On CUDA `foreach` is what torch chooses by itself, so that
the loop has to be asked for there.
"""

# torch does not annotate Tensor.backward().
# mypy: allow-untyped-calls

from pathlib import Path

import torch
from torch.nn import functional

from narrow_network import made_rows, narrow_network
from recording import Plan, Target, recorded, seeded, target

BATCH = 32
WIDTH = 64
DEPTH = 10
PLAN = Plan(wait=40, active=8)


def record(run: Path, device: torch.device, *, foreach: bool = False, fused: bool = False) -> None:
    """Trains with AdamW in one of its forms."""
    seeded()
    model = narrow_network(DEPTH, WIDTH).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, foreach=foreach, fused=fused)
    rows, labels = made_rows(BATCH, WIDTH, device)
    with recorded(run, device, PLAN) as profiler:
        for _ in range(PLAN.steps):
            optimizer.zero_grad()
            functional.cross_entropy(model(rows), labels).backward()
            optimizer.step()
            profiler.step()


def main(where: Target) -> None:
    """Records the fault, half of the fix and all of it."""
    record(where.run("one_by_one"), where.device)
    record(where.run("foreach"), where.device, foreach=True)
    record(where.run("fused"), where.device, fused=True)


if __name__ == "__main__":
    main(target("optimizer", __doc__))
