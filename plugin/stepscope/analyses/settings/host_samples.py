"""Samples of the main thread in unrecorded steps, as stepscope's recorder took them.

    "stepscope_recorder": {…, "host_samples": {
        "count": 230, "time_ns": 2_300_000_000, "step_count": 47, "interval_ns": 10_000_000,
        "frames": ["train.py(31): main", …], "stacks": [[12, 121_000_000, 0, 4], …]}}

The steps are those of `unrecorded_steps`. A stack is its number of samples, its time, and positions
in `frames`, from the outermost call (`recording/host_sampler.py`). Traces are untrusted: stacks
that are no such list are left out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stepscope.analyses.settings.recorded_settings import KEY
from stepscope.analyses.settings.setting_kinds import as_count
from stepscope.analyses.settings.user_metadata import metadata_mapping
from stepscope.model.trace import Trace, computed

SUBJECT = "host_samples"
MOST_STACKS = 2000
MOST_FRAMES = 20_000
MOST_CALLS = 500
"""Numbers of a longer stack are cut."""
MOST_CHARACTERS = 500
"""Longer names are cut."""


@dataclass(frozen=True, kw_only=True)
class SampledStack:
    """Samples with the same calls."""

    frames: tuple[str, ...]
    """`file(line): function`, from the outermost call, with the line in progress."""
    count: int
    time_ns: int


@dataclass(frozen=True, kw_only=True)
class HostSamples:
    """The samples of a trace; `stacks` may lack the rarest."""

    count: int
    time_ns: int
    """Time that all samples stand for."""
    interval_ns: int
    """Mean interval between two samples."""
    stacks: tuple[SampledStack, ...]


@computed
def host_samples(trace: Trace) -> HostSamples | None:
    """Return the samples; None without a recorder that took some."""
    figures = metadata_mapping(trace, KEY).get(SUBJECT)
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
    frames = [
        name[:MOST_CHARACTERS] if isinstance(name, str) else "" for name in names[:MOST_FRAMES]
    ]
    stacks = (_stack(row, frames) for row in rows[:MOST_STACKS])
    return [stack for stack in stacks if stack is not None]


def _stack(row: object, frames: Sequence[str]) -> SampledStack | None:
    if not isinstance(row, list) or len(row) < 3:
        return None
    count, time_ns, *positions = (as_count(value) for value in row[:MOST_CALLS])
    if not count or not time_ns:
        return None
    calls = [frames[index] for index in positions if index is not None and index < len(frames)]
    is_whole = len(calls) == len(positions) and all(calls)
    return SampledStack(frames=tuple(calls), count=count, time_ns=time_ns) if is_whole else None
