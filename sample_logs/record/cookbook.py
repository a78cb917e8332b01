"""The tour of the profiler's recipe: a ResNet-18 asked about a few images under a label.

`long_job` skips, waits, warms up and records twice, with shapes and memory; `with_stacks` records
Python's functions and modules too. Beside each trace stands what torch itself says of that span, in
`torch.span1.json`: `key_averages()` by name, by input shape and, with stacks, by stack, and what
`export_stacks` writes. Tests hold our own tables and stacks to them.
"""

# torch does not annotate profile.events().
# mypy: allow-untyped-calls

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
import torch.profiler._cupti_monitor
from torch.profiler import profile, record_function

from recording import Plan, Target, recorded, seeded, target
from resnet import ResNet18

# The import above is torch's own while it records; export_stacks then fails on the function's name.
BATCH = 5
SIDE = 64
WIDTH = 32
FRAMES = 5
LONG_JOB = Plan(skip_first=10, wait=5, warmup=1, active=5, repeat=2, memory=True)
WITH_STACKS = Plan(
    wait=5, warmup=1, active=5, stacks=True, written_stacks=True, modules=True, memory=True
)
AVERAGES = (
    "name",
    "group",
    "call_count",
    "cpu_total_us",
    "cpu_self_us",
    "cpu_total_bytes",
    "cpu_self_bytes",
)
STACKS = ("frames", "line_count", "cpu_self_us")

Row = list[Any]


class Frames:
    """Numbers for the frames of stacks, so that each is written once."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def numbered(self, stack: Iterable[str]) -> list[int]:
        """Gives the frames' numbers, in the order of the stack."""
        return [self.numbers.setdefault(frame, len(self.numbers)) for frame in stack]


def averages(of: Iterable[Any], python: set[str], group: Callable[[Any], Any]) -> list[Row]:
    """Puts torch's averages into rows, in the order of `AVERAGES`; Python's functions left out."""
    return [
        [
            each.key,
            group(each),
            each.count,
            round(each.cpu_time_total, 3),
            round(each.self_cpu_time_total, 3),
            each.cpu_memory_usage,
            each.self_cpu_memory_usage,
        ]
        for each in of
        if each.key not in python
    ]


def exported_stacks(profiler: profile, frames: Frames) -> list[Row]:
    """Adds up the lines of `export_stacks` that name the same stack, outermost frame first."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "stacks.txt")
        profiler.export_stacks(str(path), "self_cpu_time_total")
        lines = path.read_text(encoding="utf-8").splitlines()
    found: dict[str, Row] = {}
    for line in lines:
        stack, _, us = line.rpartition(" ")
        row = found.setdefault(stack, [frames.numbered(stack.split(";")), 0, 0])
        row[1] += 1
        row[2] += int(us)
    return list(found.values())


def tables(profiler: profile, *, stacks: bool) -> dict[str, list[Any]]:
    """Asks torch for its own tables of the span that was just recorded."""
    frames = Frames()
    python = {event.name for event in profiler.events() or () if event.is_python_function}
    found: dict[str, list[Any]] = {
        "averages": list(AVERAGES),
        "by_name": averages(profiler.key_averages(), python, lambda _: None),
        "by_shape": averages(
            profiler.key_averages(group_by_input_shape=True),
            python,
            lambda each: each.input_shapes,
        ),
    }
    if stacks:
        by_stack = profiler.key_averages(group_by_stack_n=FRAMES)
        found["by_stack"] = averages(by_stack, python, lambda each: frames.numbered(each.stack))
        found["stacks"] = list(STACKS)
        found["by_whole_stack"] = exported_stacks(profiler, frames)
        found["frames"] = list(frames.numbers)
    return found


def written(found: dict[str, list[Any]]) -> str:
    """Gives the tables as JSON, a row a line."""
    parts = []
    for name, table in found.items():
        rows = ",\n".join(json.dumps(row, separators=(",", ":")) for row in table)
        parts.append(f'"{name}": [\n{rows}\n]')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def record(run: Path, plan: Plan, device: torch.device) -> None:
    """Asks the model once a step, and keeps what torch says of each span."""
    seeded()
    model = ResNet18(width=WIDTH).to(device).eval()
    images = torch.rand(BATCH, 3, SIDE, SIDE, device=device)
    span = 0

    def keep(profiler: profile) -> None:
        nonlocal span
        span += 1
        said = written(tables(profiler, stacks=plan.stacks))
        (run / f"torch.span{span}.json").write_text(said, encoding="utf-8")

    with torch.inference_mode(), recorded(run, device, plan, then=keep) as profiler:
        for _ in range(plan.steps):
            with record_function("model_inference"):
                model(images)
            profiler.step()


def main(where: Target) -> None:
    """Records the long job and the one with stacks."""
    record(where.run("long_job"), LONG_JOB, where.device)
    record(where.run("with_stacks"), WITH_STACKS, where.device)


if __name__ == "__main__":
    main(target("cookbook", __doc__))
