"""Samples of unrecorded steps, of the main thread and of DataLoader workers, by the recorder.

    "stepscope_recorder": {…, "host_samples": {
        "count": 230, "time_ns": 2_300_000_000, "step_count": 47, "interval_ns": 10_000_000,
        "frames": ["train.py(31): main", …], "library_frames": [4, …],
        "stacks": [[12, 121_000_000, 0, 4], …], "without_grad": [3, …]},
    "worker_samples": {
        "process_count": 2, "count": 120, "time_ns": 1_300_000_000, "waiting_count": 80,
        "waiting_ns": 860_000_000, "interval_ns": 10_000_000, "frames": […], …}}

The steps are those of `unrecorded_steps`. A stack is its number of samples, its time, and positions
in `frames`, from the outermost call; `without_grad` are positions of stacks while autograd was off
(`recording/host_sampler.py`). Samples of workers are of all of them together, from the calls in
torch's `_worker_loop` on; those of waiting for an index have no stacks, and `count` and `time_ns`
leave them out (`recording/worker_samples.py`). Frames of installed packages but torch get their
folder back. Traces are untrusted: stacks that are no such list are left out.
"""

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stepscope.analyses.settings.recorded_settings import KEY
from stepscope.analyses.settings.setting_kinds import as_count
from stepscope.analyses.settings.user_metadata import metadata_mapping
from stepscope.model.trace import Trace, computed

SUBJECT, OF_WORKERS = "host_samples", "worker_samples"
MOST_STACKS = 2000
MOST_FRAMES = 20_000
MOST_CALLS = 500
"""Numbers of a longer stack are cut."""
MOST_CHARACTERS = 500
"""Longer names are cut."""
PACKAGES = "site-packages/"
OF_MODELS = ("diffusers", "peft", "timm", "torchaudio", "transformers")
"""Libraries of models: the user's line is the one that calls them."""


@dataclass(frozen=True, kw_only=True)
class SampledStack:
    """Samples with the same calls."""

    frames: tuple[str, ...]
    """`file(line): function`, from the outermost call, with the line in progress."""
    count: int
    time_ns: int
    is_without_grad: bool = False
    """Whether autograd was off: `no_grad`, `inference_mode`."""


@dataclass(frozen=True, kw_only=True)
class HostSamples:
    """The samples of a trace; `stacks` may lack the rarest."""

    count: int
    time_ns: int
    """Time that all samples stand for."""
    interval_ns: int
    """Mean interval between two samples."""
    stacks: tuple[SampledStack, ...]


@dataclass(frozen=True, kw_only=True)
class WorkerSamples:
    """The samples of the DataLoader workers that worked in unrecorded steps."""

    working: HostSamples
    waiting_ns: int
    """Time in which they waited for an index."""
    process_count: int

    @property
    def waiting_share(self) -> float:
        """Return the fraction of the workers' time in which they waited for an index."""
        return self.waiting_ns / (self.waiting_ns + self.working.time_ns)


@computed
def host_samples(trace: Trace) -> HostSamples | None:
    """Return the samples of the main thread; None without a recorder that took some."""
    return _samples(metadata_mapping(trace, KEY).get(SUBJECT))


@computed
def worker_samples(trace: Trace) -> WorkerSamples | None:
    """Return the samples of DataLoader workers; None without a recorder that took some."""
    figures = metadata_mapping(trace, KEY).get(OF_WORKERS)
    working = _samples(figures)
    if working is None or not isinstance(figures, Mapping):
        return None
    waiting_ns, processes = (as_count(figures.get(key)) for key in ("waiting_ns", "process_count"))
    if waiting_ns is None or not processes:
        return None
    return WorkerSamples(working=working, waiting_ns=waiting_ns, process_count=processes)


def _samples(figures: object) -> HostSamples | None:
    if not isinstance(figures, Mapping):
        return None
    interval_ns = as_count(figures.get("interval_ns")) or 0
    stacks = tuple(_stacks(figures))
    count, time_ns = (as_count(figures.get(name)) or 0 for name in ("count", "time_ns"))
    listed_count, listed_ns = (
        sum(getattr(stack, name) for stack in stacks) for name in ("count", "time_ns")
    )
    if not stacks or not interval_ns or count < listed_count or time_ns < listed_ns:
        return None
    return HostSamples(count=count, time_ns=time_ns, interval_ns=interval_ns, stacks=stacks)


def _stacks(figures: Mapping[str, Any]) -> list[SampledStack]:
    names, rows = figures.get("frames"), figures.get("stacks")
    if not isinstance(names, list) or not isinstance(rows, list):
        return []
    libraries, without_grad = (
        _positions(figures, "library_frames"),
        _positions(figures, "without_grad"),
    )
    frames = [
        _frame(name, is_of_library=position in libraries)
        for position, name in enumerate(names[:MOST_FRAMES])
    ]
    stacks = (
        _stack(row, frames, is_without_grad=position in without_grad)
        for position, row in enumerate(rows[:MOST_STACKS])
    )
    return [stack for stack in stacks if stack is not None]


def _positions(figures: Mapping[str, Any], name: str) -> frozenset[int]:
    positions = figures.get(name)
    if not isinstance(positions, list):
        return frozenset()
    return frozenset(row for row in positions[:MOST_FRAMES] if isinstance(row, int))


def _frame(name: object, *, is_of_library: bool) -> str:
    text = name[:MOST_CHARACTERS] if isinstance(name, str) else ""
    package = re.split(r"[/\\(.]", text, maxsplit=1)[0]
    is_other = package and package not in (*sys.stdlib_module_names, "torch")
    is_installed = (is_of_library and is_other) or package in OF_MODELS
    return f"{PACKAGES}{text}" if is_installed and not text.startswith("<") else text


def _stack(row: object, frames: Sequence[str], *, is_without_grad: bool) -> SampledStack | None:
    if not isinstance(row, list) or len(row) < 3:
        return None
    count, time_ns, *positions = (as_count(value) for value in row[:MOST_CALLS])
    if not count or not time_ns:
        return None
    calls = [frames[index] for index in positions if index is not None and index < len(frames)]
    is_whole = len(calls) == len(positions) and all(calls)
    if not is_whole:
        return None
    return SampledStack(
        frames=tuple(calls), count=count, time_ns=time_ns, is_without_grad=is_without_grad
    )
