"""The example of PyTorch's profiler recipe: inference of a ResNet-18 on a few images, with a label.

`long_job` skips, waits, warms up and records twice, with shapes and memory; `with_stacks` also
records Python functions and modules. Next to each trace, `torch.span1.json` holds torch's own
results for that span: `key_averages()` by name, by input shape and, with stacks, by stack, and the
output of `export_stacks`. Tests compare stepscope's tables and stacks with them.
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
        """Returns the frames' numbers, in the order of the stack."""
        return [self.numbers.setdefault(frame, len(self.numbers)) for frame in stack]


def averages(events: Iterable[Any], python: set[str], group: Callable[[Any], Any]) -> list[Row]:
    """Returns torch's averages as rows, in the order of `AVERAGES`, without Python's functions."""
    return [
        [
            event.key,
            group(event),
            event.count,
            round(event.cpu_time_total, 3),
            round(event.self_cpu_time_total, 3),
            event.cpu_memory_usage,
            event.self_cpu_memory_usage,
        ]
        for event in events
        if event.key not in python
    ]


def exported_stacks(profiler: profile, frames: Frames) -> list[Row]:
    """Adds up the lines of `export_stacks` that name the same stack, outermost frame first."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "stacks.txt")
        profiler.export_stacks(str(path), "self_cpu_time_total")
        lines = path.read_text(encoding="utf-8").splitlines()
    rows: dict[str, Row] = {}
    for line in lines:
        stack, _, us = line.rpartition(" ")
        row = rows.setdefault(stack, [frames.numbered(stack.split(";")), 0, 0])
        row[1] += 1
        row[2] += int(us)
    return list(rows.values())


def tables(profiler: profile, *, stacks: bool) -> dict[str, list[Any]]:
    """Returns torch's own tables of the span that was just recorded."""
    frames = Frames()
    python = {event.name for event in profiler.events() or () if event.is_python_function}
    parts: dict[str, list[Any]] = {
        "averages": list(AVERAGES),
        "by_name": averages(profiler.key_averages(), python, lambda _: None),
        "by_shape": averages(
            profiler.key_averages(group_by_input_shape=True),
            python,
            lambda event: event.input_shapes,
        ),
    }
    if stacks:
        by_stack = profiler.key_averages(group_by_stack_n=FRAMES)
        parts["by_stack"] = averages(by_stack, python, lambda event: frames.numbered(event.stack))
        parts["stacks"] = list(STACKS)
        parts["by_whole_stack"] = exported_stacks(profiler, frames)
        parts["frames"] = list(frames.numbers)
    return parts


def as_json(tables: dict[str, list[Any]]) -> str:
    """Returns the tables as JSON, one row per line."""
    parts = []
    for name, table in tables.items():
        rows = ",\n".join(json.dumps(row, separators=(",", ":")) for row in table)
        parts.append(f'"{name}": [\n{rows}\n]')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def record(run: Path, plan: Plan, device: torch.device) -> None:
    """Runs the model once per step, and writes torch's tables of each span."""
    seeded()
    model = ResNet18(width=WIDTH).to(device).eval()
    images = torch.rand(BATCH, 3, SIDE, SIDE, device=device)
    span = 0

    def keep(profiler: profile) -> None:
        nonlocal span
        span += 1
        text = as_json(tables(profiler, stacks=plan.stacks))
        (run / f"torch.span{span}.json").write_text(text, encoding="utf-8")

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
