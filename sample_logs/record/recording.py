"""Profiler setup of all scenarios: the recorded steps and data, and the output folder."""

import argparse
import gc
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch._C._profiler import _ExperimentalConfig
from torch.profiler import ProfilerActivity, profile, schedule

from stepscope import trace_handler

SAMPLE_LOGS = Path(__file__).resolve().parent.parent
SEED = 20_240
TRACE_PATTERN = "*.pt.trace.json.gz"
LEFT_OUT = 77
"""Exit status of a script on a machine that lacks a requirement."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Steps that the profiler records, and the data that it records of each."""

    wait: int = 1
    warmup: int = 2
    active: int = 6
    repeat: int = 1
    skip_first: int = 0
    stacks: bool = False
    written_stacks: bool = False
    """With stacks: whether the event of each operator holds its stack, as `export_stacks` needs."""
    modules: bool = False
    memory: bool = False
    is_next_span: bool = False
    """Whether the run's earlier traces stay."""
    settings: Mapping[str, Mapping[str, Any]] | None = None
    """Settings of the loop that the trace handler may not detect."""

    @property
    def steps(self) -> int:
        """Number of steps after which every span is written."""
        return self.skip_first + self.repeat * (self.wait + self.warmup + self.active)


@dataclass(frozen=True)
class Target:
    """Device of a scenario, and the folder of its runs."""

    device: torch.device
    folder: Path

    def run(self, name: str) -> Path:
        """Returns the folder of the run `name`."""
        return self.folder / name


def target(scenario: str, description: str | None) -> Target:
    """Reads `--device` and `--out`; runs on CUDA go to `<scenario>_cuda`."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--out", type=Path, default=SAMPLE_LOGS, metavar="DIR")
    options = parser.parse_args()
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device cuda: torch sees no CUDA device here; use --device cpu")
    suffix = "_cuda" if options.device == "cuda" else ""
    return Target(torch.device(options.device), options.out / f"{scenario}{suffix}")


def seeded() -> None:
    """Sets the seed, and one thread so that a busy machine disturbs less.

    Also frees the objects of earlier runs in this process, since a trace holds the settings of all
    live DataLoaders, models and optimizers.
    """
    gc.collect()
    torch.manual_seed(SEED)
    torch.set_num_threads(1)


@contextmanager
def recorded(
    run: Path,
    device: torch.device,
    plan: Plan,
    worker: str = "trainer",
    then: Callable[[profile], None] | None = None,
) -> Iterator[profile]:
    """Profiles a loop into `run`; the earlier traces of `worker` are replaced.

    After each written span, `then` is called with the profiler.
    """
    run.mkdir(parents=True, exist_ok=True)
    for earlier in () if plan.is_next_span else run.glob(f"{worker}.{TRACE_PATTERN}"):
        earlier.unlink()
    activities = [ProfilerActivity.CPU]
    if device.type == "cuda":
        activities.append(ProfilerActivity.CUDA)
    write = trace_handler(run, worker_name=worker, use_gzip=True, settings=plan.settings)

    def ready(profiler: profile) -> None:
        write(profiler)
        if then is not None:
            then(profiler)

    with profile(
        activities=activities,
        schedule=schedule(
            skip_first=plan.skip_first,
            wait=plan.wait,
            warmup=plan.warmup,
            active=plan.active,
            repeat=plan.repeat,
        ),
        on_trace_ready=ready,
        record_shapes=True,
        profile_memory=plan.memory,
        with_stack=plan.stacks,
        with_modules=plan.modules,
        experimental_config=_ExperimentalConfig(verbose=plan.written_stacks),
    ) as profiler:
        yield profiler
    sys.stdout.write(f"{run.parent.name}/{run.name}: {worker} recorded\n")
