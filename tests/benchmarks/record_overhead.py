"""Overhead of `stepscope record` for each step that it does not record.

`make overhead`, which `make bench` includes. Steps an optimizer without work, and a DataLoader of
integers: first with torch alone, then with the hooks of `script_hooks.py`, and again when recording
is complete. The difference of the medians is the overhead per step; the limit is 1 % of 10 ms.
"""

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping

import torch
from torch.utils.data import DataLoader

from stepscope.recording import script_hooks
from stepscope.recording.record_request import ACCOUNTS, RecordRequest
from stepscope.recording.script_recorder import ScriptRecorder

CALL_COUNT = 4_000
TURNS = 9
NEVER = 10**9
MOST_US = 100.0
"""1 % of 10 ms."""
US = 1e6


class Still(torch.optim.Optimizer):
    """Optimizer whose step does nothing."""

    def __init__(self) -> None:
        super().__init__([torch.nn.Parameter(torch.zeros(1))], {})

    def step(self, closure: object = None) -> None:  # type: ignore[override]
        """Do nothing."""


def optimizer_us() -> float:
    """Return the time of a step of an optimizer; its class is new, so it has the hooks."""

    class One(Still):
        def step(self, closure: object = None) -> None:  # type: ignore[override]
            pass

    optimizer = One()

    def calls() -> None:
        for _ in range(CALL_COUNT):
            optimizer.step()

    return _median_us(calls)


def batch_us() -> float:
    """Return the time of a batch of a DataLoader in this process."""
    numbers: list[int] = list(range(CALL_COUNT))
    data: DataLoader[int] = DataLoader(numbers, batch_size=None)  # type: ignore[arg-type]
    return _median_us(lambda: [None for _ in data])


def _median_us(calls: Callable[[], object]) -> float:
    taken = []
    for _ in range(TURNS):
        start = time.perf_counter()
        calls()
        taken.append((time.perf_counter() - start) / CALL_COUNT * US)
    return statistics.median(taken)


def main() -> int:
    """Measure, print, and return 1 if a step exceeds the limit."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ[ACCOUNTS] = folder
        order = RecordRequest(
            log_dir=folder, skip=NEVER, wait=0, warmup=2, active=8, repeat=1, seconds=1.0
        )
        plain = optimizer_us(), batch_us()
        recorder = ScriptRecorder(order)
        script_hooks.watch(recorder)
        watched_batch = batch_us()
        watched = optimizer_us(), batch_us()
        recorder.is_watching = False
        done = optimizer_us(), batch_us()
    added = {
        "a step of an optimizer": watched[0] - plain[0],
        "a batch, where batches are the steps": watched_batch - plain[1],
        "a batch of a training": watched[1] - plain[1],
        "a step of an optimizer, after recording is complete": done[0] - plain[0],
        "a batch, after recording is complete": done[1] - plain[1],
    }
    return 0 if show(added) else 1


def show(added_us: Mapping[str, float]) -> bool:
    """Print the overhead per step, and return whether the limit is met."""
    for name, more_us in added_us.items():
        print(f"{name}: {more_us:+.2f} us")
    print(f"at most {MOST_US:.0f} us, 1 % of a step of 10 ms")
    return max(added_us.values()) <= MOST_US


if __name__ == "__main__":
    sys.exit(main())
