"""AdamW parameter by parameter, then all parameters at once.

The network has many small parameters. In the loop that torch uses by default on a CPU, each takes a
dozen operators. On CUDA the default is `foreach`, so the loop must be requested there.

The runs differ only in Optimizer.step. On a CPU, the script records all three again if the time
outside of it varies between their steps, since that shows that another process disturbed them.
"""

# torch does not annotate Tensor.backward().
# mypy: allow-untyped-calls

import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from torch.nn import functional

from measure import complete_events, outside_ms
from narrow_network import made_rows, narrow_network
from recording import TRACE_PATTERN, Plan, Target, recorded, seeded, target

BATCH = 32
WIDTH = 64
DEPTH = 10
PLAN = Plan(wait=40, active=8)
UPDATE = "Optimizer.step#"
MOST_UNLIKE = 1.5
"""Largest ratio of the longest to the shortest time of a step outside of its update."""
MOST_TRIES = 20


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


def is_undisturbed(times_ms: Sequence[float]) -> bool:
    """Returns whether the steps took similar times outside of their updates."""
    return max(times_ms) <= MOST_UNLIKE * min(times_ms)


def record_all(where: Target) -> bool:
    """Records the fault, half of the fix and the fix; returns whether nothing disturbed them."""
    record(where.run("one_by_one"), where.device)
    record(where.run("foreach"), where.device, foreach=True)
    record(where.run("fused"), where.device, fused=True)
    traces = where.folder.rglob(TRACE_PATTERN)
    times = [ms for trace in traces for ms in outside_ms(complete_events(trace), UPDATE)]
    sys.stdout.write(f"outside of the updates {min(times):.2f} to {max(times):.2f} ms per step\n")
    return where.device.type != "cpu" or is_undisturbed(times)


def main(where: Target) -> None:
    """Records all three runs until they are undisturbed."""
    if not any(record_all(where) for _ in range(MOST_TRIES)):
        sys.exit(f"disturbed {MOST_TRIES} times: record it when the machine is idle")


if __name__ == "__main__":
    main(target("optimizer", __doc__))
